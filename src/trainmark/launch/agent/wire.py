"""Messages over two descriptors: a line of JSON, then as many raw bytes as its `bytes` says."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

READ_BYTES = 1 << 18
# Beyond this the other side is too slow: nothing more is read to be sent to it.
BACKLOG_BYTES = 8 << 20
# More than anyone here says; the other side must not fill our memory.
LONGEST_HEADER = 8 << 20
LONGEST_PAYLOAD = 256 << 20
# Heartbeats, on either side, in the time after which silence counts as a loss.
HEARTBEATS_IN_PATIENCE = 8
# Longer than any pause between two looks of a process that is not starved itself.
LONGEST_PAUSE_SECONDS = 2.0

# Folders of a trial whose files the agent sends home as they grow.
SENT_HOME = ("events", "profile")

Message = tuple[dict[str, Any], bytes]


class ClosedError(Exception):
    """The other side has gone."""


class ListeningClock:
    """Time in which this process listened: what it missed, starved or stopped, is nobody's silence."""

    def __init__(self) -> None:
        self.now = self._looked = time.monotonic()

    def look(self) -> None:
        """Called just before it is looked what has come: by `now` nothing had that is not received next."""
        looked = time.monotonic()
        self.now += min(looked - self._looked, LONGEST_PAUSE_SECONDS)
        self._looked = looked


class Wire:
    """Never blocks: `say` queues, `push` writes what the other side takes, `take` reads what has come."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self._unread = bytearray()
        self._unsent = bytearray()
        self._header: dict[str, Any] | None = None
        for end in (incoming, outgoing):
            os.set_blocking(end, False)

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        if payload:
            message = {**message, "bytes": len(payload)}
        self._unsent += json.dumps(message).encode() + b"\n" + payload
        self.push()

    def raw(self, data: bytes) -> None:
        """Before the first message: what the other side needs to understand one."""
        self._unsent += data
        self.push()

    @property
    def unsent(self) -> int:
        return len(self._unsent)

    @property
    def clogged(self) -> bool:
        return len(self._unsent) > BACKLOG_BYTES

    def push(self) -> None:
        """A reader that has gone is found out by `take`."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self.outgoing, self._unsent[:READ_BYTES])]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()

    def receive(self) -> list[Message]:
        """The messages that are complete; ClosedError once the other side has gone and all are taken."""
        try:
            came = os.read(self.incoming, READ_BYTES)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            came = b""  # a socket whose other end closed before it had read everything
        except OSError as error:
            raise ClosedError(str(error)) from error
        if not came:
            raise ClosedError("closed")
        self._unread += came
        messages = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def drain(self, seconds: float) -> bool:
        """Whether all that was said has been written within `seconds`."""
        deadline = time.monotonic() + seconds
        while self._unsent and time.monotonic() < deadline:
            wait_writable(self.outgoing, 0.1)
            self.push()
        return not self._unsent

    def _next(self) -> Message | None:
        if self._header is None:
            end = self._unread.find(b"\n")
            if end < 0 and len(self._unread) < LONGEST_HEADER:
                return None
            self._header = _parse_header(bytes(self._unread[: max(end, 0)]))
            del self._unread[: end + 1]
        size = self._header.get("bytes", 0)
        if len(self._unread) < size:
            return None
        payload = bytes(self._unread[:size])
        del self._unread[:size]
        header, self._header = self._header, None
        return header, payload


def wait_writable(descriptor: int, seconds: float) -> None:
    """Wait for room by poll(): select() refuses descriptors above 1,023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    poll.poll(seconds * 1000)


def _parse_header(line: bytes) -> dict[str, Any]:
    """A header that can be relied on; whoever sends anything else is not listened to any more."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    size = header.get("bytes", 0) if isinstance(header, dict) else None
    if not isinstance(size, int) or not 0 <= size <= LONGEST_PAYLOAD:
        raise ClosedError(f"broken by what is no message: {line[:80]!r}")
    return dict(header)
