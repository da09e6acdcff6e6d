"""Starting the server: the database brought up, the folder locked, its sockets and connections bounded."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from multiprocessing import reduction
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.app import create_app
from trainmark.server.database import migrate
from trainmark.server.database.engine import opened, reading
from trainmark.server.ingest.ingest import clear_incoming, remove_unfinished
from trainmark.server.settings import ServerSettings, locked, to_environment

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


MOST_CONNECTIONS = 400
BACKLOG = 512
GRACE_SECONDS = 30
KEEP_ALIVE_SECONDS = 15
WORKERS_APP = "trainmark.server.app:from_workers"


@dataclass(frozen=True)
class ListenOptions:
    """Where to listen; `certificate` and `key` are files in PEM. `workers` above 1 are processes."""

    host: str = "127.0.0.1"
    port: int = 8300
    certificate: Path | None = None
    key: Path | None = None
    workers: int = 1


def serve(settings: ServerSettings, listening: ListenOptions, ready: Callable[[str, bool], None]) -> None:
    """Serve until stopped. `ready` gets the address, and whether there is a token, once it listens."""
    require_safe(settings, listening)
    with locked(settings):
        with opened(settings) as engine:
            if migrate.current(engine) is None:
                migrate.upgrade(engine)
            migrate.require_current(engine)
            # Before the marks of what was being stored go with the rest.
            remove_unfinished(engine, settings)
            with reading(engine) as connection:
                has_token = bool(tokens.tokens(connection))
        clear_incoming(settings)
        config = _config(settings, listening)
        socket = config.bind_socket()
        # Connections inherit it. Without it the end of an answer waits for the client to acknowledge its
        # beginning, which takes 40 ms; asyncio sets it only on sockets that name their protocol.
        socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        # Whoever connects from now on is answered once the application is up.
        socket.listen(BACKLOG)
        address, port = listening.host, socket.getsockname()[1]
        shown = f"[{address}]" if ":" in address else address
        ready(f"{'https' if listening.certificate else 'http'}://{shown}:{port}", has_token)
        try:
            if listening.workers > 1:
                from uvicorn.supervisors import Multiprocess

                Multiprocess(config, [SharedSocket(socket.detach(), settings.proxies)]).run()
            else:
                uvicorn.Server(config).run(sockets=[ListeningSocket(socket.detach(), settings.proxies)])
        finally:
            socket.close()


def require_safe(settings: ServerSettings, listening: ListenOptions) -> None:
    """UserError where tokens would travel readable by others, or the certificate does not do."""
    if settings.webhook is not None and not is_address(settings.webhook):
        raise UserError("--webhook takes an address that begins with https:// or http:// and names a host.")
    if (listening.certificate is None) != (listening.key is None):
        raise UserError("--tls-cert and --tls-key go together.")
    if listening.certificate is not None and listening.key is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(listening.certificate, listening.key)
        except (ssl.SSLError, OSError) as error:
            raise UserError(
                f"{listening.certificate} with {listening.key} is no certificate: {error}."
            ) from error
    elif not is_loopback(listening.host) and not settings.proxies:
        raise UserError(
            f"--host {listening.host} would send tokens unencrypted; give --tls-cert and --tls-key,"
            " or --proxy ADDRESS of the proxy that does TLS."
        )


def is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _config(settings: ServerSettings, listening: ListenOptions) -> uvicorn.Config:
    several = listening.workers > 1
    if several:
        to_environment(settings)
    return uvicorn.Config(
        WORKERS_APP if several else create_app(settings),
        factory=several,
        workers=listening.workers,
        host=listening.host,
        port=listening.port,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        access_log=False,
        log_level="warning",
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws="none",
        http=TimedProtocol,
        # The other kind accepts by itself, whatever the listening socket says.
        loop="asyncio",
    )
