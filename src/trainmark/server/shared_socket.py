"""Listening sockets: one client does not take all connections, and worker processes share them evenly."""

from __future__ import annotations

import errno
import ipaddress
import socket
import time
from collections.abc import Collection
from multiprocessing import reduction
from typing import Any
from weakref import WeakSet

# A process that has n connections leaves the next one to the others for n times as long.
SECONDS_A_CONNECTION = 0.0005
MOST_SECONDS = 0.005
MOST_OF_CLIENT = 64


class ListeningSocket(socket.socket):
    """Hang up at once on an address that holds as many connections as one may.

    Here, and not once HTTP is spoken: before that, TLS waits a minute for the client's part. `proxies` are
    exempt, as all clients come by them.
    """

    def __init__(self, descriptor: int, proxies: Collection[str] = ()) -> None:
        super().__init__(fileno=descriptor)
        self.proxies = frozenset(proxies)
        self._clients: dict[str, WeakSet[socket.socket]] = {}

    def accept(self) -> tuple[socket.socket, Any]:
        """Raise BlockingIOError, as without a connection, after a client's was closed."""
        connection, address = super().accept()
        client = client_of(address[0])
        if address[0] in self.proxies or client in self.proxies:
            return connection, address
        held = self._clients.get(client, ())
        if sum(one.fileno() >= 0 for one in held) >= MOST_OF_CLIENT:
            connection.close()
            raise BlockingIOError(errno.EAGAIN, "this client has enough connections")
        if client not in self._clients:
            self._clients = {name: sockets for name, sockets in self._clients.items() if sockets}
        self._clients.setdefault(client, WeakSet()).add(connection)
        return connection, address


def client_of(address: str) -> str:
    """Return whom an address counts for: in IPv6 everybody has the 64 bits of a network to choose from."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((int(known) >> 64 << 64, 64)))


class SharedSocket(ListeningSocket):
    """Accept in turns: without them the process that wakes first takes all who connect at once.

    A connection is kept for many requests, so that process would be late and the others idle.
    """

    def __init__(self, descriptor: int, proxies: Collection[str] = ()) -> None:
        super().__init__(descriptor, proxies)
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


def _rebuilt(duplicate: Any, proxies: frozenset[str]) -> SharedSocket:
    return SharedSocket(duplicate.detach(), proxies)


def _reduced(shared: SharedSocket) -> tuple[Any, ...]:
    return _rebuilt, (reduction.DupFd(shared.fileno()), shared.proxies)


reduction.register(SharedSocket, _reduced)
