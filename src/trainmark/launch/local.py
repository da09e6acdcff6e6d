"""The local launcher: N ranks on this machine, under one agent that outlives neither them nor us."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

from trainmark.launch.job import Exited, Job

AGENT = Path(__file__).with_name("agent.py")
LOOPBACK = "127.0.0.1"
GRACE_SECONDS = 3.0


class LocalLauncher:
    """`first_port` is tried before any other, so that a site can name the one its firewall leaves open."""

    def __init__(self, first_port: int | None = None) -> None:
        self._first_port = first_port

    def start(self, job: Job) -> LocalSession:
        for part in ("logs", "events"):
            (job.folder / part).mkdir(parents=True, exist_ok=True)
        port, self._first_port = self._first_port or free_port(), None
        spec = {
            "grace": GRACE_SECONDS,
            "ranks": [
                {
                    "rank": rank,
                    "command": list(job.command),
                    "environment": {**job.environment, **placement(job, rank, port)},
                    "folder": str(job.working_folder),
                    "log": str(job.log(rank)),
                }
                for rank in range(job.world_size)
            ],
        }
        path = job.folder / "job.json"
        path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
        return LocalSession(path)


class LocalSession:
    def __init__(self, job: Path) -> None:
        self._agent = subprocess.Popen(
            [sys.executable, "-E", "-s", str(AGENT), str(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._agent.stdin is not None and self._agent.stdout is not None
        self._input, self._output = self._agent.stdin, self._agent.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._unread = b""
        self._pids: dict[int, int] = {}
        self.log_lost: str | None = None
        self.root_pid: int | None = self._agent.pid

    def exits(self, timeout: float) -> list[Exited]:
        if not self._selector.select(timeout):
            return []
        self._unread += os.read(self._output.fileno(), 1 << 16)
        *lines, self._unread = self._unread.split(b"\n")
        messages = [json.loads(line) for line in lines]
        for message in messages:
            if message["event"] == "started":
                self._pids[message["rank"]] = message["pid"]
            elif message["event"] == "log-lost":
                self.log_lost = message["reason"]
        gone = [Exited(m["rank"], m["code"]) for m in messages if m["event"] == "exited"]
        for exited in gone:
            del self._pids[exited.rank]
        return gone

    def lost(self) -> bool:
        return self._agent.poll() is not None and bool(self._pids)

    def show_stacks(self) -> None:
        self._tell(b"stacks\n")

    def stop(self) -> None:
        self._tell(b"stop\n")
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._agent.wait(timeout=GRACE_SECONDS + 10)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
        if self._agent.returncode < 0:  # it was killed before it could clean up
            for pid in self._pids.values():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        self._selector.close()
        self._output.close()

    def _tell(self, words: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.write(self._input.fileno(), words)


def placement(job: Job, rank: int, port: int) -> dict[str, str]:
    """The variables by which every framework's ranks find each other."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % job.ranks_per_node),
        "WORLD_SIZE": str(job.world_size),
        "LOCAL_WORLD_SIZE": str(job.ranks_per_node),
        "NODE_RANK": str(rank // job.ranks_per_node),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        # gloo asks the resolver for this host's name otherwise, which many machines cannot answer.
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        "TRAINMARK_EVENTS": str(job.folder / "events"),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
