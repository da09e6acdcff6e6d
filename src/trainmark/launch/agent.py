"""The agent on a node: starts its ranks, keeps what they print, and leaves nothing behind.

    python agent.py job.json      then on standard input `stop` or `stacks`; its end means stop

It is a process of its own so that killing the harness cannot orphan a rank: when its standard input
closes, it ends every descendant, including those that left their process group, and then itself.
Standard library only; it knows nothing of Trainmark.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

TICK = 0.1
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # The terminal's Ctrl-C is the harness's to understand.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    agent = Agent(job["grace"])
    try:
        for spec in job["ranks"]:
            agent.start(spec)
        agent.watch()
    finally:
        agent.end_descendants(job["grace"])


class Agent:
    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.ranks: dict[int, int] = {}  # pid → rank
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ, None)
        self.open_logs = 0

    def start(self, spec: dict[str, Any]) -> None:
        process = subprocess.Popen(
            spec["command"],
            env={**os.environ, **spec["environment"]},
            cwd=spec["folder"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        assert process.stdout is not None
        self.ranks[process.pid] = spec["rank"]
        self.selector.register(process.stdout, selectors.EVENT_READ, Log(process.stdout, Path(spec["log"])))
        self.open_logs += 1
        say(event="started", rank=spec["rank"], pid=process.pid)

    def watch(self) -> None:
        while self.ranks or self.open_logs:
            for key, _ in self.selector.select(TICK):
                if key.data is None:
                    if not self.obey(os.read(0, 4096)):
                        return
                else:
                    self.keep(key.data)
            self.reap()
            if not self.ranks and self.open_logs:
                # A grandchild may hold the pipe open; it is not the trial's any more.
                self.end_descendants(0.0)
                self.drain_logs()

    def obey(self, words: bytes) -> bool:
        """False once the agent is to stop and everything is gone."""
        if b"stacks" in words:
            for pid in self.ranks:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR1)
        if words and b"stop" not in words:
            return True
        self.end_descendants(self.grace)
        self.drain_logs()
        return False

    def keep(self, log: Log) -> None:
        if not log.take():
            self.selector.unregister(log.pipe)
            self.open_logs -= 1

    def drain_logs(self) -> None:
        while self.open_logs and (ready := self.selector.select(0)):
            logs = [key.data for key, _ in ready if key.data is not None]
            if not logs:
                return
            for log in logs:
                self.keep(log)
        self.open_logs = 0

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            rank = self.ranks.pop(pid, None)
            if rank is not None:
                say(event="exited", rank=rank, code=os.waitstatus_to_exitcode(status))

    def end_descendants(self, grace: float) -> None:
        """TERM, then KILL until nothing is left: a process may fork while it is being ended."""
        send(descendants(os.getpid()), signal.SIGTERM if grace else signal.SIGKILL)
        deadline = time.monotonic() + grace
        while alive := descendants(os.getpid()):
            if time.monotonic() >= deadline:
                send(alive, signal.SIGKILL)
            self.reap()
            time.sleep(0.02)
        self.reap()


class Log:
    """A rank's output, whole, beside the times at which its bytes came."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        self.pipe = pipe
        self.file = path.open("ab", buffering=0)
        self.arrivals = path.with_suffix(".arrivals").open("a", buffering=1)
        self.size = 0

    def take(self) -> bool:
        chunk = os.read(self.pipe.fileno(), 1 << 16)
        self.size += len(chunk)
        try:
            if chunk:
                self.file.write(chunk)
                self.arrivals.write(f"{self.size} {time.monotonic():.6f}\n")
        except OSError as error:
            # A full disk must not block the rank on its own output; the harness hears of it.
            say(event="log-lost", reason=str(error))
        return bool(chunk)


def descendants(root: int) -> list[int]:
    """All living processes below `root`, from /proc; zombies are gone already."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux has it; elsewhere closing input must do
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def say(**message: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
