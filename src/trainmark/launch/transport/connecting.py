"""Connections to many nodes: opened a few dozen at a time, each until the hello of its agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.launch.nodes.node import Node, NodeError
from trainmark.launch.transport.agent_connection import AgentConnection, close_all, stop_all
from trainmark.launch.transport.patience import PATIENCE_SECONDS, scaled
from trainmark.launch.transport.poller import Poller

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
        connecting = _Connecting(nodes, reach, scaled(hello_seconds, len(nodes)), poller)
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
        self._patience = scaled(PATIENCE_SECONDS, len(nodes))
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
