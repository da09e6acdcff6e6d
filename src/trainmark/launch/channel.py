"""A channel: the two ends of a pipe to a process that runs on some node, and what it said when it died."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Protocol

END_SECONDS = 2.0
TAIL_BYTES = 4096


class Channel(Protocol):
    incoming: int
    outgoing: int
    pid: int | None
    """Of a process of this machine that all below it belongs to; None where the node is another."""

    def last_words(self) -> str:
        """The last line that the carrier printed for people, after its end; may be empty."""

    def close(self, patient: bool = True) -> int | None:
        """Ends what is left of the carrier; its exit code where it has one."""


def end_with_input(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Of a child that lives for as long as its standard input: closes that, and gives it time to leave."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Last: it may have something to say while it leaves, and would die of a pipe that nobody reads.
    for end in (process.stdout, process.stderr):
        if end is not None:
            end.close()


class PipeChannel:
    """A command of this machine whose standard input and output are the agent's."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._ends = (self._process.stdin, self._process.stdout)
        self.outgoing, self.incoming = (end.fileno() for end in self._ends)
        self.pid: int | None = self._process.pid

    def last_words(self) -> str:
        if self._errors.closed:
            return ""
        self._errors.seek(0, 2)
        self._errors.seek(max(0, self._errors.tell() - TAIL_BYTES))
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else ""

    def close(self, patient: bool = True) -> int | None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.close()
        for harder in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_SECONDS if patient else 0.1)
                break
            except subprocess.TimeoutExpired:
                harder()
        self._process.wait()
        self._errors.close()
        return self._process.returncode
