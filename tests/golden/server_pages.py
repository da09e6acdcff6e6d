"""A server on a free port, with some of the recorded runs pushed to it, for its pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PUSHED = (*(f"nightly-{night:02d}" for night in range(4, 12)), "gpu", "finish")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
OPENER.addheaders = [("Accept", "text/html, application/json")]


class Server:
    def __init__(self, folder: Path, environment: Mapping[str, str], run: Callable[[str], Any]) -> None:
        self._folder = folder
        (folder / "token").touch(0o600)
        (folder / "token").write_text(run("server token create golden --role push").out, encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trainmark", "serve", "--public", "--port", "0"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._url = re.findall(r"http://\S+", self._process.stdout.readline())[0]
        for name in PUSHED:
            pushed = run(f"push packed/{name}.trainmark --to {self._url} --token-file token")
            if pushed.code:
                self.stop()
                raise RuntimeError(f"{name} cannot be pushed: {pushed.err}")

    def get(self, address: str) -> str:
        """Return a page, or JSON with a line a value; `{NAME}` in the address is a run's UUID."""
        address = re.sub(r"{(\S+?)}", self._uuid, address)
        try:
            with OPENER.open(self._url + address, timeout=60) as response:
                text = response.read().decode("utf-8")
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8")
        if text.startswith(("{", "[")):
            text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
        return text.replace(self._url, "http://SERVER")

    def _uuid(self, name: re.Match[str]) -> str:
        info = json.loads((self._folder / "raw" / name[1] / "run.json").read_text(encoding="utf-8"))
        return str(info["uuid"])

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()
