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
import time
from collections.abc import Sequence
from pathlib import Path

from trainmark.launch.job import Exited, Job

AGENT = Path(__file__).with_name("agent.py")
LOOPBACK = "127.0.0.1"
GRACE_SECONDS = 3.0
KILL_SECONDS = 5.0
EVENTS = "TRAINMARK_EVENTS"  # where trainmark.probe writes
PEERS = "TRAINMARK_PEERS"


class LocalLauncher:
    """`first_port` is tried before any other, so that a site can name the one its firewall leaves open."""

    def __init__(self, first_port: int | None = None) -> None:
        self._first_port = first_port

    def start(self, job: Job) -> LocalSession:
        for part in ("logs", "events"):
            (job.folder / part).mkdir(parents=True, exist_ok=True)
        master, *ports = free_ports(1 + job.world_size)
        master, self._first_port = self._first_port or master, None
        peers = [f"{LOOPBACK}:{port}" for port in ports]
        spec = {
            "grace": GRACE_SECONDS,
            "ranks": [
                {
                    "rank": rank,
                    "command": list(job.command),
                    "environment": {**job.environment, **placement(job, rank, master, peers)},
                    "folder": str(job.working_folder),
                    "log": str(job.log(rank)),
                }
                for rank in range(job.world_size)
            ],
        }
        path = job.folder / "job.json"
        path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
        return LocalSession(path, job.world_size, marker=f"{EVENTS}={job.folder / 'events'}")


class LocalSession:
    """`marker` stands in the environment of every process of the job, however far it moved away."""

    def __init__(self, job: Path, world_size: int, marker: str) -> None:
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
        self._ended = False
        self._running = set(range(world_size))
        self._marker = marker.encode()
        self.lost_output: OSError | None = None
        self.root_pid: int | None = self._agent.pid

    def exits(self, timeout: float) -> list[Exited]:
        if not self._selector.select(timeout):
            return []
        told = os.read(self._output.fileno(), 1 << 16)
        self._ended = not told
        *lines, self._unread = (self._unread + told).split(b"\n")
        messages = [json.loads(line) for line in lines]
        for message in messages:
            if message["event"] == "lost-output":
                self.lost_output = OSError(message["number"], message["reason"], message["path"])
        gone = [Exited(m["rank"], m["code"]) for m in messages if m["event"] == "exited"]
        self._running -= {exited.rank for exited in gone}
        return gone

    def lost(self) -> bool:
        # The agent's output ends with the agent, and only after its last message.
        return self._ended and bool(self._running)

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
            kill_marked(self._marker)
        while not (self._ended or self._output.closed):
            self.exits(0.0)
        self._selector.close()
        self._output.close()

    def _tell(self, words: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.write(self._input.fileno(), words)


def placement(job: Job, rank: int, port: int, peers: Sequence[str]) -> dict[str, str]:
    """The variables by which every framework's ranks find each other; `peers` has an address for each."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % job.ranks_per_node),
        "WORLD_SIZE": str(job.world_size),
        "LOCAL_WORLD_SIZE": str(job.ranks_per_node),
        "NODE_RANK": str(rank // job.ranks_per_node),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        PEERS: ",".join(peers),
        # gloo asks the resolver for this host's name otherwise, which many machines cannot answer.
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        EVENTS: str(job.folder / "events"),
    }


def kill_marked(marker: bytes) -> None:
    """Ends every process with this variable in its environment, also those forked meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    found = True
    while found and time.monotonic() < deadline:
        found = False
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if marker in environment.read_bytes().split(b"\0"):
                    os.kill(int(environment.parent.name), signal.SIGKILL)
                    found = True


def free_ports(count: int) -> list[int]:
    """All held at once, so that no two are the same."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
