"""The ranks of a node, from their ports and their start to the end of all that they leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import selectors
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainmark.launch.agent.wire import Wire
from trainmark.machine.process_tree import descendants


def free_ports(address: str, count: int) -> list[int]:
    """Return as many free ports; all are bound at once, so that no two are the same."""
    with contextlib.ExitStack() as bound:
        probes = [bound.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((address, 0))
        return [int(probe.getsockname()[1]) for probe in probes]


PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 5.0
DAEMON_SECONDS = 1.0
# What MPI starts on a node to carry us.
MPI_DAEMONS = frozenset({"orted", "prted", "hydra_pmi_proxy"})


def adopt_orphans() -> None:
    """What a rank leaves behind becomes ours, so that it can be found."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def become_rank() -> None:
    """Before the program starts: it dies with the agent, and what we ignore is not ignored in it."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal: any other would die of it."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_marked(mark: str) -> bool:
    """Ends every process with `NAME=value` in its environment, also those forked meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        pids = processes_with_mark(mark)
        if not pids:
            return True
        signal_all(pids, signal.SIGKILL)
        time.sleep(0.02)
    return False


def processes_with_mark(mark: str) -> list[int]:
    pids = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environment.read_bytes().split(b"\0"):
                pids.append(int(environment.parent.name))
    return [pid for pid in pids if pid != os.getpid()]


def end_mpi_daemon() -> None:
    """Cut off from home as we are, it would wait a quarter of an hour for TCP to give up."""
    parent = os.getppid()
    with contextlib.suppress(OSError):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if Path(f"/proc/{parent}/comm").read_text().strip() not in MPI_DAEMONS:
                return
            os.kill(parent, number)
            time.sleep(DAEMON_SECONDS)


def kernel_oom_kills() -> int:
    """How often the kernel has ended a process for want of memory since boot; 0 where it does not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def exit_code(status: int) -> int:
    """As `subprocess` says it: negative for a signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux has it; elsewhere closing input must do
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


MASK = b"*****"
# Shorter values ("1", "yes") would be cut out of figures.
SHORTEST_SECRET = 6


class RankLog:
    """Losing output must not block a rank: the first error is kept, and the rest is dropped."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.trouble: OSError | None = None
        self._size = 0
        self._mask = Mask(secrets)
        self._files: list[io.FileIO] = []
        self._open()

    def add(self, chunk: bytes, moment: float | None = None) -> None:
        self._keep(self._mask.hide(chunk), moment)

    def close(self) -> None:
        self._keep(self._mask.rest(), None)
        self.release()

    def release(self) -> None:
        """Close the files until there is more to keep: of thousands of logs, not all can be open."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _open(self) -> None:
        try:
            for name in (self.path, self.path.with_suffix(".arrivals")):
                self._files.append(name.open("ab", buffering=0))
        except OSError as error:
            self.trouble = error

    def _keep(self, chunk: bytes, moment: float | None) -> None:
        if not chunk or self.trouble is not None:
            return
        self._size += len(chunk)
        arrival = f"{self._size} {time.monotonic() if moment is None else moment:.6f}\n"
        if not self._files:
            self._open()
        try:
            log, arrivals = self._files
            _write(log, chunk)
            _write(arrivals, arrival.encode())
        except OSError as error:
            self.trouble = OSError(error.errno, error.strerror, str(self.path))


def _write(file: io.FileIO, rest: bytes) -> None:
    while rest:
        rest = rest[file.write(rest) :]


class Mask:
    """Replaces secrets in a stream; holds back only what may be the beginning of one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)
        self._pending = b""

    def hide(self, chunk: bytes) -> bytes:
        if not self._secrets:
            return chunk
        text = self._pending + chunk
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        overlap = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._pending = text[len(text) - overlap :]
        return text[: len(text) - overlap]

    def rest(self) -> bytes:
        pending, self._pending = self._pending, b""
        return pending


def _overlap(text: bytes, secret: bytes) -> int:
    """How many bytes at the end of `text` begin `secret`."""
    longest = min(len(secret) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(secret[:size])), 0)


class RankOutput:
    """Losses are told, once."""

    def __init__(self, rank: int, wire: Wire, log: str | None, secrets: list[str]) -> None:
        self.rank = rank
        self.wire = wire
        self.log = RankLog(Path(log), secrets) if log else None
        self.trouble_sent = False

    def add(self, chunk: bytes) -> None:
        if self.log is None:
            self.wire.send({"event": "output", "rank": self.rank, "mono": time.monotonic()}, chunk)
            return
        self.log.add(chunk)
        self.tell_trouble()

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
            self.tell_trouble()

    def tell_trouble(self) -> None:
        if self.log is not None and self.log.trouble is not None and not self.trouble_sent:
            self.trouble_sent = True
            error = self.log.trouble
            details = {"number": error.errno, "reason": error.strerror, "path": str(self.log.path)}
            self.wire.send({"event": "lost-output", **details})


NOT_STARTED = 127  # as a shell says it
READ_BYTES = 1 << 16
ROOM_BYTES = 1 << 20
LAST_WORDS_SECONDS = 5.0


class RankProcesses:
    """`scratch` is the folder that they write into, where that is on this node."""

    def __init__(self, wire: Wire, selector: selectors.BaseSelector) -> None:
        self.wire = wire
        self.selector = selector
        self.scratch: Path | None = None
        self.running: dict[int, int] = {}  # pid → rank
        # Held to the end: a Popen that is dropped reaps its child behind our back, and the exit is lost.
        self.processes: list[subprocess.Popen[bytes]] = []
        self.outputs: dict[int, RankOutput] = {}  # pipe → output
        self.oom_kills = kernel_oom_kills()

    def start(self, spec: dict[str, Any]) -> None:
        output = RankOutput(spec["rank"], self.wire, spec["log"], spec["secrets"])
        unset = tuple(spec["unset"])
        environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        try:
            process = subprocess.Popen(
                spec["command"],
                env={**environment, **spec["environment"]},
                cwd=spec["folder"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=become_rank,
            )
        except OSError as error:
            output.add(f"cannot start: {error}\n".encode())
            output.close()
            self.wire.send({"event": "exited", "rank": spec["rank"], "code": NOT_STARTED, "oom_kills": 0})
            return
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        os.set_blocking(pipe, False)
        self.processes.append(process)
        self.running[process.pid] = spec["rank"]
        self.outputs[pipe] = output
        self.selector.register(pipe, selectors.EVENT_READ)

    def keep_output(self) -> bool:
        """Whether there was any."""
        any_output = False
        for pipe, output in list(self.outputs.items()):
            if self.wire.clogged:
                break
            try:
                chunk = os.read(pipe, READ_BYTES)
            except BlockingIOError:
                continue
            if chunk:
                output.add(chunk)
                any_output = True
            else:
                self.selector.unregister(pipe)
                del self.outputs[pipe]
                output.close()
        return any_output

    def reap(self) -> bool:
        """Whether a child is left; as their subreaper, without one we have no descendants either."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            rank = self.running.pop(pid, None)
            if rank is not None:
                self.tell_exit(rank, exit_code(status))

    def tell_exit(self, rank: int, code: int) -> None:
        kills = kernel_oom_kills() - self.oom_kills
        self.wire.send({"event": "exited", "rank": rank, "code": code, "oom_kills": kills})
        if code and self.scratch is not None and shutil.disk_usage(self.scratch).free < ROOM_BYTES:
            self.wire.send({"event": "full", "path": str(self.scratch)})

    def end(self, grace: float) -> None:
        """TERM, then KILL until nothing is left: a process may fork while it is being ended.

        What outlives the ranks is not the trial's any more and gets no grace.
        """
        grace = grace if self.running else 0.0
        signal_all(descendants(os.getpid()), signal.SIGTERM if grace else signal.SIGKILL)
        deadline = time.monotonic() + grace
        while self.reap() or descendants(os.getpid()):
            if time.monotonic() >= deadline:
                signal_all(descendants(os.getpid()), signal.SIGKILL)
            self.keep_output()
            self.wire.push()
            time.sleep(0.02)
        last = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < last and (self.keep_output() or self.wire.clogged):
            self.wire.push()
        for output in self.outputs.values():
            output.close()
