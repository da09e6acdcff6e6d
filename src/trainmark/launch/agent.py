"""The agent on a node: starts its ranks, keeps what they print, and leaves nothing behind.

    python agent.py job.json      then on standard input `stop` or `stacks`; its end means stop

It is a process of its own so that killing the harness cannot orphan a rank: when its standard input
closes, it ends every descendant, including those that left their process group, and then itself.
Standard library only; it knows nothing of Trainmark.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TICK = 0.1
NOT_STARTED = 127  # as a shell says it
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
        agent.end()


class Agent:
    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.ranks: dict[int, int] = {}  # pid → rank
        # Held to the end: a Popen that is dropped reaps its child behind our back, and the exit is lost.
        self.processes: list[subprocess.Popen[bytes]] = []
        self.logs: dict[int, Log] = {}  # pipe → log
        self.child_left = pipe_of_signals(signal.SIGCHLD)
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(self.child_left, selectors.EVENT_READ)

    def start(self, spec: dict[str, Any]) -> None:
        log = Log(Path(spec["log"]))
        try:
            process = subprocess.Popen(
                spec["command"],
                env={**os.environ, **spec["environment"]},
                cwd=spec["folder"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=become_rank,
            )
        except OSError as error:
            log.add(f"cannot start: {error}\n".encode())
            say(event="exited", rank=spec["rank"], code=NOT_STARTED)
            return
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        os.set_blocking(pipe, False)
        self.processes.append(process)
        self.ranks[process.pid] = spec["rank"]
        self.logs[pipe] = log
        self.selector.register(pipe, selectors.EVENT_READ)

    def watch(self) -> None:
        """Returns when every rank has left, or the harness wants it so."""
        while self.ranks:
            ready = {key.fd for key, _ in self.selector.select(TICK)}
            if 0 in ready and not self.obey(os.read(0, 4096)):
                return
            if self.child_left in ready:
                os.read(self.child_left, 4096)
            self.reap()
            self.keep_output()

    def obey(self, words: bytes) -> bool:
        """False once the agent is to stop."""
        if b"stacks" in words:
            send([pid for pid in descendants(os.getpid()) if catches(pid, signal.SIGUSR1)], signal.SIGUSR1)
        return bool(words) and b"stop" not in words

    def keep_output(self) -> bool:
        """Whether there was any."""
        kept = False
        for pipe, log in list(self.logs.items()):
            try:
                chunk = os.read(pipe, 1 << 16)
            except BlockingIOError:
                continue
            if chunk:
                log.add(chunk)
                kept = True
            else:
                self.selector.unregister(pipe)
                del self.logs[pipe]
        return kept

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

    def end(self) -> None:
        """TERM, then KILL until nothing is left: a process may fork while it is being ended.

        What outlives the ranks is not the trial's any more and gets no grace.
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        grace = self.grace if self.ranks else 0.0
        send(descendants(os.getpid()), signal.SIGTERM if grace else signal.SIGKILL)
        deadline = time.monotonic() + grace
        while alive := descendants(os.getpid()):
            if time.monotonic() >= deadline:
                send(alive, signal.SIGKILL)
            self.reap()
            self.keep_output()
            time.sleep(0.02)
        self.reap()
        while self.keep_output():
            pass


class Log:
    """A rank's output, whole, beside the times at which its bytes came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.lost = False
        with self.losses_told():
            self.file = path.open("ab", buffering=0)
            self.arrivals = path.with_suffix(".arrivals").open("ab", buffering=0)

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if not self.lost:
            with self.losses_told():
                write_all(self.file, chunk)
                write_all(self.arrivals, f"{self.size} {time.monotonic():.6f}\n".encode())

    @contextlib.contextmanager
    def losses_told(self) -> Iterator[None]:
        """A full disk must not block a rank on its own output; the harness hears of it, once."""
        try:
            yield
        except OSError as error:
            self.lost = True
            say(event="lost-output", number=error.errno, reason=error.strerror, path=str(self.path))


def write_all(file: io.FileIO, rest: bytes) -> None:
    while rest:
        rest = rest[file.write(rest) :]


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


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal: any other would die of it."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def pipe_of_signals(number: signal.Signals) -> int:
    """Readable once the signal has come: a dead rank is seen before its peers die of it."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(number, lambda *_: None)
    return read


def become_rank() -> None:
    """Before the program starts: it dies with the agent, and what we ignore is not ignored in it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux has it; elsewhere closing input must do
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def say(**message: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
