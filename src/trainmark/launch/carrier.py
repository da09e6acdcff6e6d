"""What one way of reaching nodes must know, and the channel that it gives: a command's input and output.

What carriers print for people lies in one file without a name, each carrier at its own offset. A file for
each would be a descriptor for each, and named files would be left behind by a harness that is killed.
Where there is no memfd (Linux has it), it is a file for each.
"""

from __future__ import annotations

import abc
import contextlib
import itertools
import os
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from trainmark.launch.nodes import Node, NodeError

TAIL_BYTES = 4096
# The file is sparse: what nobody writes takes no room.
REGION_BYTES = 1 << 30
SHARED = hasattr(os, "memfd_create")
_numbers = itertools.count()


class StderrFile:
    """One carrier's part of it."""

    def __init__(self) -> None:
        self._file = _shared_file() if SHARED else _unnamed_file()
        self._start = next(_numbers) * REGION_BYTES if SHARED else 0

    def open(self) -> int:
        """A descriptor to be a carrier's stderr; whoever opens it closes it."""
        if not SHARED:
            return os.dup(self._file)
        # A file description of its own, so that its offset is its own too.
        descriptor = os.open(f"/proc/self/fd/{self._file}", os.O_WRONLY)
        os.lseek(descriptor, self._start, os.SEEK_SET)
        return descriptor

    def last_line(self) -> str:
        """Empty where nothing was printed."""
        try:
            end = os.lseek(self._file, self._start, os.SEEK_HOLE) if SHARED else os.fstat(self._file).st_size
        except OSError:  # beyond what anybody wrote
            return ""
        start = max(self._start, end - 2 * TAIL_BYTES)  # holes begin at whole pages
        tail = os.pread(self._file, end - start, start).rstrip(b"\0")[-TAIL_BYTES:]
        lines = [line.strip() for line in tail.decode("utf-8", "replace").split("\n") if line.strip()]
        return lines[-1] if lines else ""

    def close(self) -> None:
        if not SHARED:
            os.close(self._file)


@lru_cache
def _shared_file() -> int:
    return os.memfd_create("trainmark-stderr")


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


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
    `launcher.py` counts on that.
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


@dataclass(frozen=True)
class CarrierOption:
    """An option of the command line that only one launcher understands."""

    flag: str
    help: str
    is_file: bool = False

    @property
    def name(self) -> str:
        """`--ssh-config` is `ssh_config` in a run's folder."""
        return self.flag.removeprefix("--").replace("-", "_")


class Carrier(Protocol):
    """Starts a command on a node with its standard input and output connected to here."""

    name: str
    hello_seconds: float
    """How long a node may take until its agent says hello."""

    def nodes(self) -> tuple[Node, ...]:
        """Those it was given or was allotted, in the order in which they are used."""

    def reach(self, node: Node, command: Sequence[str]) -> Channel:
        """NodeError where it cannot even be tried."""

    def shown(self, node: Node, command: Sequence[str]) -> str:
        """The same as a person would type it."""

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        """Which node is to blame for one that has gone, and why; None where there is nobody to ask."""

    def gone(self) -> str | None:
        """Why no node can be reached any more, as after a cancelled allocation; None while they can."""

    def close(self) -> None:
        """Gives back what was allotted for the run. Safe to call twice."""


class CommandCarrier(abc.ABC):
    """Reaches a node by a command of this machine; what differs is its words."""

    @abc.abstractmethod
    def words(self, node: Node, command: Sequence[str]) -> list[str]:
        """That run `command` on the node."""

    def reach(self, node: Node, command: Sequence[str]) -> PipeChannel:
        words = self.words(node, command)
        try:
            channel = PipeChannel(words)
        except OSError as error:  # as where a user may start no more processes
            raise NodeError(node.name, f"{words[0]} cannot be started here: {error.strerror}") from error
        channel.pid = None
        return channel

    def shown(self, node: Node, command: Sequence[str]) -> str:
        return shlex.join(self.words(node, command))

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        return None

    def gone(self) -> str | None:
        return None

    def close(self) -> None:
        return None  # nothing was allotted
