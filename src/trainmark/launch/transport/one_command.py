"""One command that starts the agents of all nodes, where a scheduler has one that can."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from trainmark.launch.nodes.node import Node
from trainmark.launch.transport.agent_connection import AgentConnection
from trainmark.launch.transport.channel import PipeChannel
from trainmark.launch.transport.listener import Listener, SharedCarrier, address_towards
from trainmark.launch.transport.patience import scaled

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
            connections = listener.accept_all(tasks, scaled(CONNECT_SECONDS, len(nodes)), command.ended)
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
