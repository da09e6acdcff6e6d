"""A framework of one small wheel, its lock, and `trainmark frameworks` as a person calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

HANG_GUARD_SECONDS = 240.0
HEADER = "# python: 3.10 - 3.30\n# import: toy\n# size: 1 MB\n"


@dataclass(frozen=True)
class Done:
    code: int
    output: str
    errors: str


class Toy:
    """A home, a folder of locks and a folder of wheels of their own; no network."""

    def __init__(self, folder: Path) -> None:
        self.home, self.locks, self.wheels = folder / "home", folder / "locks", folder / "wheels"
        self.locks.mkdir(parents=True, exist_ok=True)
        self.wheels.mkdir(exist_ok=True)
        self.environment = self.home / "environments" / "toy"
        self.marker = self.environment / "trainmark.json"
        self.python = self.environment / "bin" / "python"
        self.done: Done | None = None
        self.started: list[subprocess.Popen[str]] = []

    @property
    def variables(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        return {
            **inherited,
            "TRAINMARK_HOME": str(self.home),
            "TRAINMARK_LOCKS": str(self.locks),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_NO_CACHE_DIR": "1",
        }

    def release(self, version: str = "1.0", source: str = "", tag: str = "py3-none-any") -> None:
        """A wheel of this version that runs `source` when it is imported."""
        wheel = self.wheels / f"toy-{version}-{tag}.whl"
        info = f"toy-{version}.dist-info"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("toy/__init__.py", f"__version__ = {version!r}\n{source}\n")
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: toy\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
            archive.writestr(f"{info}/RECORD", "")

    def lock(self, version: str = "1.0", header: str = HEADER, pins: str = "") -> None:
        (self.locks / "toy.txt").write_text(f"{header}toy=={version}\n{pins}")

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainmark", "frameworks", *words],
            env={**self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background has Ctrl-C ignored; a person's terminal has not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> Done:
        output, errors = process.communicate(timeout=HANG_GUARD_SECONDS)
        assert "Traceback" not in errors, errors
        return Done(process.returncode, output, errors)

    def call(self, *words: str, **variables: str) -> Done:
        return self.finish(self.start(*words, **variables))

    def wait_for(self, path: Path) -> None:
        deadline = time.monotonic() + HANG_GUARD_SECONDS
        while not path.exists():
            assert time.monotonic() < deadline, f"waited in vain for {path}"
            time.sleep(0.02)
