"""Starting the server: the database brought up, the folder locked, uvicorn run."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY
from urllib.parse import urlsplit

import uvicorn

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.app import create_app
from trainmark.server.connections import TimedProtocol
from trainmark.server.database import migrate
from trainmark.server.database.engine import opened, reading
from trainmark.server.ingest.files import clear_incoming
from trainmark.server.ingest.unreferenced import remove_unfinished
from trainmark.server.lock import locked
from trainmark.server.settings import Settings, to_environment
from trainmark.server.shared_socket import ListeningSocket, SharedSocket

MOST_CONNECTIONS = 400
BACKLOG = 512
GRACE_SECONDS = 30
KEEP_ALIVE_SECONDS = 15
WORKERS_APP = "trainmark.server.app:from_workers"


@dataclass(frozen=True)
class Listening:
    """Where to listen; `certificate` and `key` are files in PEM. `workers` above 1 are processes."""

    host: str = "127.0.0.1"
    port: int = 8300
    certificate: Path | None = None
    key: Path | None = None
    workers: int = 1


def serve(settings: Settings, listening: Listening, ready: Callable[[str, bool], None]) -> None:
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


def require_safe(settings: Settings, listening: Listening) -> None:
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


def _config(settings: Settings, listening: Listening) -> uvicorn.Config:
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
