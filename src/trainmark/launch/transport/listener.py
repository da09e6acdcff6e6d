"""The place where agents that one command has started on many nodes connect back to."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainmark.launch.nodes.node import Node
from trainmark.launch.transport.channel import PipeChannel
from trainmark.launch.transport.connect_back import proof, read_line

TICK_SECONDS = 0.2
HANDSHAKE_SECONDS = 2.0


class Listener:
    """Open at one address, only until all agents have come, and only to those who know the token."""

    def __init__(self, address: str) -> None:
        self._token = secrets.token_hex(16)
        self._socket = socket.create_server((address, 0), backlog=1024)
        self._socket.settimeout(TICK_SECONDS)

    @property
    def invitation(self) -> dict[str, Any]:
        """What an agent must know to connect."""
        address, port = self._socket.getsockname()[:2]
        return {"address": address, "port": port, "token": self._token}

    def accept_all(
        self, tasks: Mapping[str, Node], seconds: float, stopped: Callable[[], bool]
    ) -> dict[Node, socket.socket]:
        """A connection of each task's node; fewer where `seconds` have passed or it was `stopped`."""
        connections: dict[Node, socket.socket] = {}
        deadline = time.monotonic() + seconds
        while len(connections) < len(tasks) and time.monotonic() < deadline and not stopped():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._socket.accept()
                node = tasks.get(self._handshake(connection) or "")
                if node is None or node in connections:
                    connection.close()
                else:
                    connections[node] = connection
        return connections

    def close(self) -> None:
        self._socket.close()

    def _handshake(self, connection: socket.socket) -> str | None:
        """The task at the other end, if it knows the token."""
        connection.settimeout(HANDSHAKE_SECONDS)
        try:
            shown = json.loads(read_line(connection))
            node, nonce = str(shown["node"]), str(shown["nonce"])
            if not hmac.compare_digest(str(shown["proof"]), proof(self._token, f"agent {node} {nonce}")):
                return None
            connection.sendall(proof(self._token, f"home {node} {nonce}").encode() + b"\n")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return node


class SharedCarrier:
    """The one command behind the connections of all nodes; it is closed with the last of them."""

    def __init__(self, channel: PipeChannel, connections: Mapping[Node, socket.socket]) -> None:
        self._channel = channel
        self.channels = {node: SharedChannel(self, each) for node, each in connections.items()}
        self._open = len(self.channels)

    def leave(self, patient: bool) -> None:
        self._open -= 1
        if self._open == 0:
            self._channel.close(patient)


class SharedChannel:
    """A node's own connection."""

    pid: int | None = None

    def __init__(self, carrier: SharedCarrier, connection: socket.socket) -> None:
        self._carrier = carrier
        self._socket = connection
        self._closed = False
        self.incoming = self.outgoing = connection.fileno()

    def last_words(self) -> str:
        """What the command prints is about any of the nodes."""
        return ""

    def close(self, patient: bool = True) -> int | None:
        if not self._closed:
            self._closed = True
            self._socket.close()
            self._carrier.leave(patient)
        return None


def address_towards(host: str) -> str | None:
    """This machine's own address on the way to a host; None where its name means nothing here."""
    with (
        contextlib.suppress(OSError, UnicodeError),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe,
    ):
        probe.connect((socket.gethostbyname(host), 9))  # nothing is sent
        return str(probe.getsockname()[0])
    return None
