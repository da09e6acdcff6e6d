"""The connection to the agent on one node, as the harness sees it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from trainmark.launch.agent.wire import HEARTBEATS_IN_PATIENCE, ClosedError, ListeningClock, Message, Wire
from trainmark.launch.nodes.node import Node
from trainmark.launch.transport.bundle import agent_line
from trainmark.launch.transport.channel import END_SECONDS, Channel, close_together
from trainmark.launch.transport.patience import PATIENCE_SECONDS, scaled


class Polled(Protocol):
    """What waits for all connections and sends what waits in them."""

    clock: ListeningClock

    def watch_backlog(self, connection: AgentConnection) -> None: ...

    def remove(self, connection: AgentConnection) -> None: ...


class AgentConnection:
    """`closed` has the reason once the agent cannot be heard any more; `silent` if it may still live."""

    def __init__(self, node: Node, channel: Channel, patience: float | None = PATIENCE_SECONDS) -> None:
        self.node = node
        self.channel = channel
        self.patience = patience
        self.heard = self.pulsed = time.monotonic()
        self.closed: str | None = None
        self.gone = False
        self.silent = False
        self.poller: Polled | None = None
        self._wire = Wire(channel.incoming, channel.outgoing)
        self._wire.raw(agent_line())

    @property
    def incoming(self) -> int:
        return self._wire.incoming

    @property
    def outgoing(self) -> int:
        return self._wire.outgoing

    @property
    def unsent(self) -> int:
        """Bytes that still wait to be sent."""
        return self._wire.unsent

    @property
    def clogged(self) -> bool:
        return self.closed is None and self._wire.clogged

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        if self.closed is None:
            self._wire.send(message, payload)
            if self._wire.unsent and self.poller is not None:
                self.poller.watch_backlog(self)

    def push(self) -> None:
        self._wire.push()

    def receive(self) -> list[Message]:
        """What has come since; the end of the agent is noted, with the carrier's reason."""
        if self.closed is not None:
            return []
        try:
            messages = self._wire.receive()
        except ClosedError as error:
            self._leave()
            self.closed = self.channel.last_words() or f"the connection was {error}"
            return []
        if self.poller is not None:
            self.heard = self.poller.clock.now
        self.gone = self.gone or any(message.get("event") == "gone" for message, _ in messages)
        return messages

    def pulse(self, now: float) -> None:
        """Tells the agent now and then that home is there."""
        if self.patience is not None and now - self.pulsed > self.patience / HEARTBEATS_IN_PATIENCE:
            self.pulsed = now
            self.send({"do": "alive"})

    def check_heartbeat(self, now: float) -> None:
        """Give up a node that was silent for too long, by the clock of whoever listens to it."""
        if self.closed is None and self.patience is not None and now - self.heard > self.patience:
            self.silent = True
            self._leave()
            self.closed = f"nothing was heard of it for {self.patience:.0f} s"

    def close(self) -> int | None:
        (code,) = close_all([self])
        return code

    def disconnect(self) -> None:
        """Nothing is sent or received any more."""
        self._leave()
        if self.closed is None:
            self.closed = "closed"

    def _leave(self) -> None:
        if self.poller is not None:
            self.poller.remove(self)


def close_all(connections: Sequence[AgentConnection]) -> list[int | None]:
    """Close all connections together; the exit codes of their carriers, in order."""
    for connection in connections:
        connection.disconnect()
    seconds = scaled(END_SECONDS, len(connections))
    return close_together(
        [(connection.channel, not connection.silent) for connection in connections], seconds
    )


def stop_all(connections: Iterable[AgentConnection]) -> None:
    """Tell every agent to end before waiting for any of them."""
    stopping = list(connections)
    for connection in stopping:
        connection.send({"do": "stop"})
    close_all(stopping)
