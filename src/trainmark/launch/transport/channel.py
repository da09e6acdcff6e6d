"""A channel: the connection to a process that runs on some node, and what it said when it died."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from trainmark.launch.transport.stderr_file import StderrFile

END_SECONDS = 2.0
SILENT_END_SECONDS = 0.1
POLL_SECONDS = 0.01
SLOWEST_POLL_SECONDS = 0.05


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
    """A command of this machine whose standard input and output are the agent's.

    It holds one descriptor, so that a thousand of them fit into what a process usually may open: both
    directions go over one socket, and what the command prints for people goes to a file that all share.
    `descriptors.py` counts on that.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._errors = StderrFile()
        errors = self._errors.open()
        self._socket, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=errors,
                start_new_session=True,
            )
        except BaseException:
            self._socket.close()
            self._errors.close()
            raise
        finally:
            theirs.close()
            os.close(errors)
        self.incoming = self.outgoing = self._socket.fileno()
        self.pid: int | None = self._process.pid
        self._removed = False

    def send_all(self, data: bytes) -> None:
        """For a command that has no agent at its other end; waits until it has taken everything."""
        self._socket.sendall(data)

    def last_words(self) -> str:
        return "" if self._removed else self._errors.last_line()

    def close(self, patient: bool = True) -> int | None:
        (code,) = close_together([(self, patient)])
        return code

    def disconnect(self) -> None:
        """Its process sees its input end."""
        self._socket.close()

    def ended(self) -> bool:
        return self._process.poll() is not None

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def remove(self) -> int | None:
        """Its exit code, once it has ended; waits for that."""
        if not self._removed:
            self._removed = True
            self._errors.close()
        self._process.wait()
        return self._process.returncode


def close_together(
    channels: Sequence[tuple[Channel, bool]], seconds: float = END_SECONDS
) -> list[int | None]:
    """Close all at once, each with whether it is waited for; their exit codes, in order.

    The patience is for all of them together: a thousand that hang take no longer than one.
    """
    piped = [(channel, patient) for channel, patient in channels if isinstance(channel, PipeChannel)]
    for channel, _ in piped:
        channel.disconnect()
    for harder in (PipeChannel.terminate, PipeChannel.kill):
        _wait_for_end([channel for channel, patient in piped if not patient], SILENT_END_SECONDS)
        _wait_for_end([channel for channel, patient in piped if patient], seconds)
        for channel, _ in piped:
            if not channel.ended():
                harder(channel)
    return [
        channel.remove() if isinstance(channel, PipeChannel) else channel.close(patient)
        for channel, patient in channels
    ]


def _wait_for_end(channels: Sequence[PipeChannel], seconds: float) -> None:
    deadline, pause = time.monotonic() + seconds, POLL_SECONDS
    while (channels := [each for each in channels if not each.ended()]) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 1.5, SLOWEST_POLL_SECONDS)
