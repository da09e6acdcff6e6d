"""Connections to many nodes: a carrier's command for each, a few dozen at a time, until its agent's hello.

Where a scheduler has one command that starts the agents of all nodes, they connect back to a listener here.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from trainmark.launch.carrier import PipeChannel
from trainmark.launch.connection import (
    PATIENCE_SECONDS,
    AgentConnection,
    Poller,
    close_all,
    scaled_timeout,
    stop_all,
)
from trainmark.launch.nodes import Node, NodeError
from trainmark.machine.handshake import proof, read_line

# More at once and a login node, a jump host (MaxStartups) or a scheduler begins to refuse some.
AT_ONCE = 32
TICK_SECONDS = 0.1


@dataclass(frozen=True)
class Connected:
    """`hello` is the greeting of the node; its `offset` takes the node's monotonic clock to ours."""

    connection: AgentConnection
    hello: Mapping[str, Any]


def connect(
    nodes: Sequence[Node], reach: Callable[[Node], AgentConnection], hello_seconds: float, all_needed: bool
) -> list[Connected | NodeError]:
    """A connection to each node, or why there is none, in their order.

    Where all are needed, the first that cannot be had is raised, and the others are closed again.
    """
    with Poller() as poller:
        connecting = _Connecting(nodes, reach, scaled_timeout(hello_seconds, len(nodes)), poller)
        try:
            while not connecting.is_done():
                connecting.step()
                if all_needed and connecting.failures:
                    raise connecting.failures[0]
        except BaseException:
            stop_all(connecting.connections)
            raise
    close_all(connecting.given_up)
    return [connecting.outcomes[node] for node in nodes]


class _Connecting:
    """`connections` are all that were reached; those `given_up` are closed together at the end."""

    def __init__(
        self, nodes: Sequence[Node], reach: Callable[[Node], AgentConnection], limit: float, poller: Poller
    ) -> None:
        self.outcomes: dict[Node, Connected | NodeError] = {}
        self.failures: list[NodeError] = []
        self.connections: list[AgentConnection] = []
        self.given_up: list[AgentConnection] = []
        self._nodes = iter(nodes)
        self._count = len(nodes)
        self._reach = reach
        self._limit = limit
        self._poller = poller
        self._patience = scaled_timeout(PATIENCE_SECONDS, len(nodes))
        self._opening: dict[AgentConnection, float] = {}  # connection → when it is given up

    def is_done(self) -> bool:
        return len(self.outcomes) == self._count

    def step(self) -> None:
        self._open_more()
        for connection in self._poller.wait(TICK_SECONDS if self._opening else 0.0):
            for message, _ in connection.receive():
                if message.get("event") == "hello" and connection in self._opening:
                    self._settle(connection, hello_of(connection, message))
        for connection, deadline in list(self._opening.items()):
            if connection.closed is not None:
                self._settle(connection, NodeError(connection.node.name, connection.closed))
            elif self._poller.clock.now > deadline:
                connection.silent = True
                self._settle(
                    connection, NodeError(connection.node.name, f"no answer within {self._limit:.0f} s")
                )

    def _open_more(self) -> None:
        while len(self._opening) < AT_ONCE and (node := next(self._nodes, None)) is not None:
            try:
                connection = self._reach(node)
            except NodeError as error:
                self._fail(node, error)
                continue
            connection.patience = self._patience
            self.connections.append(connection)
            self._opening[connection] = self._poller.clock.now + self._limit
            self._poller.add(connection)
            connection.send({"do": "greet", "patience": self._patience})

    def _settle(self, connection: AgentConnection, hello: Mapping[str, Any] | NodeError) -> None:
        del self._opening[connection]
        if isinstance(hello, NodeError):
            connection.disconnect()
            self.given_up.append(connection)
            self._fail(connection.node, hello)
        else:
            self.outcomes[connection.node] = Connected(connection, hello)

    def _fail(self, node: Node, error: NodeError) -> None:
        self.outcomes[node] = error
        self.failures.append(error)


def hello_of(connection: AgentConnection, message: Mapping[str, Any]) -> dict[str, Any] | NodeError:
    """What a node says is its word alone: nothing in it may break us."""
    try:
        addresses = {str(name): str(address) for name, address in message["addresses"].items()}
        offset = time.monotonic() - float(message["mono"])
        known = {
            "host": str(message["host"]),
            "reached_at": message["reached_at"] and str(message["reached_at"]),
        }
        return {**known, "addresses": addresses, "offset": offset}
    except (KeyError, TypeError, ValueError, AttributeError):
        return NodeError(connection.node.name, "its greeting is not understood")


ACCEPT_TICK_SECONDS = 0.2
HANDSHAKE_SECONDS = 2.0


class Listener:
    """Open at one address, only until all agents have come, and only to those who know the token."""

    def __init__(self, address: str) -> None:
        self._token = secrets.token_hex(16)
        self._socket = socket.create_server((address, 0), backlog=1024)
        self._socket.settimeout(ACCEPT_TICK_SECONDS)

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


# Up to so many, a command for each is as quick and leaves each node to itself.
FEWEST_NODES = 33
CONNECT_SECONDS = 20.0


@runtime_checkable
class Starter(Protocol):
    """A carrier with such a command."""

    task_facts: Mapping[str, Any]
    """`node_variable` tells a task which it is; whether agents are `detached` from their tasks."""

    def tasks(self, nodes: Sequence[Node]) -> dict[str, Node] | None:
        """The node of each task, by what its variable says; None where there is no such command."""

    def address_of(self, node: Node) -> str:
        """Its address or name, as the scheduler knows it."""

    def start_all(self, nodes: Sequence[Node], python: str, invitation: str) -> PipeChannel:
        """Runs on each node what connects back; the invitation is on no command line."""


def connect_by_one_command(starter: Starter, nodes: Sequence[Node]) -> dict[Node, AgentConnection] | str:
    """A connection to each node, or the reason why they are better reached one by one."""
    pythons = {node.python for node in nodes}
    tasks = starter.tasks(nodes)
    if tasks is None or len(pythons) > 1:
        return "no one command can start them all"
    address = address_towards(starter.address_of(nodes[0]))
    if address is None:
        return f"{nodes[0].name} has no address that is known here"
    try:
        listener = Listener(address)
    except OSError as error:
        return f"{address} cannot be listened at: {error.strerror}"
    try:
        invitation = json.dumps({**listener.invitation, **starter.task_facts})
        command = starter.start_all(nodes, pythons.pop(), invitation)
        try:
            connections = listener.accept_all(
                tasks, scaled_timeout(CONNECT_SECONDS, len(nodes)), command.ended
            )
        except BaseException:
            command.close(patient=False)
            raise
    except OSError as error:
        return f"it cannot be started here: {error.strerror}"
    finally:
        listener.close()
    carrier = SharedCarrier(command, connections)
    if len(connections) == len(nodes):
        return {node: AgentConnection(node, channel) for node, channel in carrier.channels.items()}
    reason = (
        command.last_words() or f"{len(nodes) - len(connections)} of {len(nodes)} nodes did not connect back"
    )
    for channel in carrier.channels.values():
        channel.close(patient=False)
    command.close(patient=False)
    return reason
