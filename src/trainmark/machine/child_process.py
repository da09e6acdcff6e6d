"""A child that may print without end, hang or leave children: watched, bounded, and ended whole."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CHUNK = 1 << 16
TAIL_BYTES = 1 << 16  # bytes of standard error, and of a line without an end
TICK = 0.1
DRAIN_SECONDS = 2.0
PR_SET_PDEATHSIG = 1
# Reads until the pipe's other end, which Trainmark alone has, is closed by its death; then ends the group.
GUARD = 'read -r _; kill -s KILL -- "-$1"'
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ProcessExit:
    """`code` is None where the limit passed and the child was ended; `errors` is the end of what it wrote."""

    code: int | None
    errors: str

    @property
    def last_line(self) -> str:
        """What it said last, without what a terminal would obey."""
        lines = ("".join(c for c in line if c.isprintable()).strip() for line in self.errors.splitlines())
        nonempty = [line for line in lines if line]
        return nonempty[-1][:300] if nonempty else self.how

    @property
    def how(self) -> str:
        if self.code is None:
            return "it did not answer in time"
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        if self.code == 0:
            return "it ended without an answer"
        return f"it left with exit code {self.code}"


class Tail:
    """The last bytes of what came."""

    def __init__(self) -> None:
        self.content = b""

    def __call__(self, data: bytes) -> None:
        self.content = (self.content + data)[-TAIL_BYTES:]


class LineSplitter:
    """Hands on whole lines; of one that has no end only the end is kept."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._open = b""

    def __call__(self, data: bytes) -> None:
        *whole, rest = (self._open + data).split(b"\n")
        self._open = rest[-TAIL_BYTES:]
        for line in whole:
            self._tell(line.decode(errors="replace"))

    def close(self) -> None:
        if self._open:
            self._tell(self._open.decode(errors="replace"))


def run(
    command: Sequence[str],
    tell: Callable[[str], None],
    *,
    limit: float | None = None,
    given: str = "",
    environment: Mapping[str, str] | None = None,
    together: bool = False,
    descriptors: Sequence[int] = (),
    folder: Path | None = None,
) -> ProcessExit:
    """Runs it to its end; `tell` gets each line of its output, and with `together` of its errors too.

    Whatever it has started in its process group ends with it, and with Trainmark, also by `kill -9`.
    `descriptors` stay open in it.
    """
    with tempfile.TemporaryFile() as questions:
        questions.write(given.encode())
        questions.seek(0)
        child = subprocess.Popen(
            command,
            stdin=questions,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            env=environment,
            cwd=folder,
            pass_fds=tuple(descriptors),
            start_new_session=True,
            preexec_fn=partial(_die_with_us, os.getpid()) if LIBC else None,
        )
    tail, lines = Tail(), LineSplitter(tell)
    with _ended_with_us(child):
        code = _watch(child, tail, lines, limit)
    lines.close()
    return ProcessExit(code, tail.content.decode(errors="replace"))


def _die_with_us(parent: int) -> None:
    """In the child: when Trainmark is killed, the kernel kills this too; not what it has started."""
    if LIBC:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the request
            os._exit(1)


@contextlib.contextmanager
def _ended_with_us(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """End the child's process group with the block; a guard does it where Trainmark is killed in it."""
    guard = None
    try:
        guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(child.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        if guard:
            # Before the child is reaped: its number may be another group's afterwards.
            guard.kill()
            guard.communicate()
        child.wait()
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _watch(
    child: subprocess.Popen[bytes], tail: Tail, lines: LineSplitter, limit: float | None
) -> int | None:
    deadline = time.monotonic() + limit if limit else float("inf")
    assert child.stdout
    with selectors.DefaultSelector() as selector:
        if child.stderr:
            selector.register(child.stdout, selectors.EVENT_READ, (lines,))
            selector.register(child.stderr, selectors.EVENT_READ, (tail,))
        else:
            selector.register(child.stdout, selectors.EVENT_READ, (lines, tail))
        while time.monotonic() < deadline:
            if child.poll() is not None:
                _drain(selector)
                return child.returncode
            _read(selector, TICK)
    return None


def _drain(selector: selectors.BaseSelector) -> None:
    """What is still in the pipes; a grandchild that goes on printing is not waited for."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline and _read(selector, 0):
        pass


def _read(selector: selectors.BaseSelector, patience: float) -> bool:
    if not selector.get_map():
        time.sleep(patience)
        return False
    ready = selector.select(patience)
    for key, _ in ready:
        if data := os.read(key.fd, CHUNK):
            for sink in key.data:
                sink(data)
        else:
            selector.unregister(key.fileobj)
    return bool(ready)
