"""Several agents asked at the same time: one answer of each, or why there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trainmark.launch.agent.wire import Message
from trainmark.launch.nodes.node import NodeError
from trainmark.launch.transport.agent_connection import AgentConnection
from trainmark.launch.transport.patience import ANSWER_SECONDS, scaled
from trainmark.launch.transport.poller import Poller

TICK_SECONDS = 0.25


def gather(
    connections: Sequence[AgentConnection],
    event: str,
    limit: float | None = None,
    stop_asked: Callable[[], bool] | None = None,
    beside: Sequence[AgentConnection] = (),
) -> list[Message | NodeError]:
    """One `event` of each, in their order, or why it did not come; other messages meanwhile are dropped.

    `beside` are sent their heartbeats meanwhile.
    """
    limit = scaled(ANSWER_SECONDS, len(connections)) if limit is None else limit
    outcomes: dict[AgentConnection, Message | NodeError] = {}
    waiting = set(connections)
    with Poller({*connections, *beside}) as poller:
        deadline = poller.clock.now + limit
        while waiting and not (stop_asked and stop_asked()):
            for connection in poller.wait(TICK_SECONDS):
                for message, payload in connection.receive():
                    if (
                        connection in waiting
                        and (answer := _answer(connection, event, message, payload)) is not None
                    ):
                        outcomes[connection] = answer
                        waiting.discard(connection)
            late = poller.clock.now > deadline
            for connection in [connection for connection in waiting if late or connection.closed is not None]:
                outcomes[connection] = NodeError(
                    connection.node.name, connection.closed or f"no answer within {limit:.0f} s"
                )
                waiting.discard(connection)
    return [
        outcomes.get(connection, NodeError(connection.node.name, "stopped by the user"))
        for connection in connections
    ]


def _answer(
    connection: AgentConnection, event: str, message: dict[str, Any], payload: bytes
) -> Message | NodeError | None:
    if message.get("event") == event:
        return {**message, "received": time.time()}, payload
    if message.get("event") == "trouble":
        return NodeError(connection.node.name, str(message.get("reason")))
    return None


T = TypeVar("T")


def answers(outcomes: Sequence[T | NodeError]) -> list[T]:
    """All of them; the first node that gave none is raised."""
    for each in outcomes:
        if isinstance(each, NodeError):
            raise each
    return [each for each in outcomes if not isinstance(each, NodeError)]
