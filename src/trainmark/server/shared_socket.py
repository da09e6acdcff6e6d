"""A listening socket that worker processes share, and that spreads connections among them."""

from __future__ import annotations

import errno
import socket
import time
from multiprocessing import reduction
from typing import Any
from weakref import WeakSet

# A process that has n connections leaves the next one to the others for n times as long.
SECONDS_A_CONNECTION = 0.0005
MOST_SECONDS = 0.005


class SharedSocket(socket.socket):
    """Accept in turns: without them the process that wakes first takes all who connect at once.

    A connection is kept for many requests, so that process would be late and the others idle.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._open: WeakSet[socket.socket] = WeakSet()
        self._turn = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Raise BlockingIOError, as without a connection, while it is the others' turn."""
        if time.monotonic() < self._turn:
            raise BlockingIOError(errno.EAGAIN, "it is the turn of another process")
        connection, address = super().accept()
        self._open.add(connection)
        self._turn = time.monotonic() + min(MOST_SECONDS, SECONDS_A_CONNECTION * len(self._open))
        return connection, address


def _rebuilt(duplicate: Any) -> SharedSocket:
    return SharedSocket(duplicate.detach())


def _reduced(shared: SharedSocket) -> tuple[Any, ...]:
    return _rebuilt, (reduction.DupFd(shared.fileno()),)


reduction.register(SharedSocket, _reduced)
