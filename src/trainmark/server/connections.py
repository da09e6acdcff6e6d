"""Limits of a connection: how long a request's head, its body, and a client that does not read may take.

uvicorn has none of them but for the pause between two requests, and counts connections whoever holds them: a
client that sends half of a head would keep its place for as long as it likes. How many connections an address
may hold is the matter of the listening socket.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

CHECK_SECONDS = 1.0
HEAD_SECONDS = 20.0
# Of a body, and of what is still sent after it was refused: so many bytes in so many seconds at least.
SLOWEST_BYTES, BODY_SECONDS = 20 << 10, 20.0
# For a refusal to be read by a client that first sends everything.
REFUSED_BODY_SECONDS = 60.0
UNREAD_SECONDS = 60.0
TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class TimedProtocol(H11Protocol):
    """HTTP of one connection, which is looked at every second."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._received = 0
        self._state: tuple[int, str] = 0, ""
        self._began = self._window_began = self.loop.time()
        self._window_received = 0
        self._check = self.loop.call_later(CHECK_SECONDS, self._checked)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)

    def _phase(self) -> str:
        cycle = self.cycle
        if self.flow.write_paused:
            return "unread"
        if cycle is None or (cycle.response_complete and not cycle.more_body):
            return "head"
        if cycle.more_body:
            return "refused body" if cycle.response_complete else "body"
        return "answer"

    def _checked(self) -> None:
        self._check = self.loop.call_later(CHECK_SECONDS, self._checked)
        now, phase = self.loop.time(), self._phase()
        if self._state != (id(self.cycle), phase):
            self._state, self._began = (id(self.cycle), phase), now
            self._window_began, self._window_received = now, self._received
        if phase == "unread" and now - self._began > UNREAD_SECONDS:
            # Closing would wait for the client to read what is left.
            self.transport.abort()
        elif (phase == "head" and now - self._began > HEAD_SECONDS) or (
            phase == "refused body" and now - self._began > REFUSED_BODY_SECONDS
        ):
            self._close()
        elif phase in ("body", "refused body") and now - self._window_began > BODY_SECONDS:
            # Where the server itself does not read, the client is not slow.
            if self._received - self._window_received < SLOWEST_BYTES and not self.flow.read_paused:
                self._close()
            self._window_began, self._window_received = now, self._received

    def _close(self) -> None:
        if self.cycle is None or not self.cycle.response_started:
            self.transport.write(TIMED_OUT)
        self.transport.close()
