"""`trainmark serve` as a process that can be killed and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.database import migrate
from trainmark.server.database.engine import open_engine, writing
from trainmark.server.settings import ServerSettings

ADDRESS = re.compile(r"Serving (\S+) from")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ServerProcess:
    """A server over a folder and a database; its processes are a group of their own."""

    def __init__(self, data: Path, database: str | None = None, *options: str, port: int = 0) -> None:
        self.settings = ServerSettings(data, database)
        self._options, self._port = options, port
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def token(self, name: str, role: Role, expires: float | None = None, suites: str | None = None) -> str:
        """Make a token straight in the database, with tables where it is new."""
        engine = open_engine(self.settings)
        if migrate.current(engine) is None:
            migrate.upgrade(engine)
        with writing(engine) as connection:
            secret = tokens.create(connection, name, role, expires, suites)
        engine.dispose()
        return secret

    def start(self) -> ServerProcess:
        database = ["--database", self.settings.database] if self.settings.database else []
        place = ["--data", str(self.settings.data), "--port", str(self._port), *database]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trainmark", "serve", *place, *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            lines.append(line)
            if address := ADDRESS.match(line):
                self.url = address[1]
                return self
        raise RuntimeError("the server did not start: " + "".join(lines))

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it as a power cut would: no handler runs."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def stopped_log(self) -> str:
        """Stop it and return what it has logged."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)
        log, _ = self._process.communicate()
        self._process = None
        return log

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        os.kill(self._process.pid, how)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def memory_mb(self) -> float:
        """Resident memory of the server and its workers now."""
        return sum(process.memory_info().rss for process in self._serving()) / 1e6

    def cpu_seconds(self) -> float:
        """Processor time that the server and its workers have taken so far."""
        times = [process.cpu_times() for process in self._serving()]
        return sum(own.user + own.system for own in times)

    def _serving(self) -> list[psutil.Process]:
        """The processes that answer requests; the fork server and its checks come and go."""
        server = psutil.Process(self.pid)
        return [server, *(child for child in server.children() if "spawn_main" in " ".join(child.cmdline()))]

    def request(
        self,
        path: str,
        token: str | None = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        own = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        request = urllib.request.Request(self.url + path, data, own, method=method)
        try:
            with _OPENER.open(request, timeout=120) as response:
                return Answer(response.status, _lower(response.headers), response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, _lower(error.headers), error.read())

    def push(self, file: Path, token: str) -> Answer:
        return self.request("/api/v1/packs", token, file.read_bytes())


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


_OPENER = urllib.request.build_opener(_NoRedirects(), urllib.request.ProxyHandler({}))
