"""The connection to the agent on one node, one epoll over all connections, and one answer of each agent.

select() takes no descriptor above 1,023. The more nodes there are, the longer the slowest of them may take.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from trainmark.launch.agent.wire import HEARTBEATS_IN_PATIENCE, ClosedError, ListeningClock, Message, Wire
from trainmark.launch.bundle import agent_line
from trainmark.launch.carrier import END_SECONDS, Channel, close_together
from trainmark.launch.nodes import Node, NodeError

# How long a silent node is waited for, on either side; well over a lost packet's repetition.
PATIENCE_SECONDS = 8.0
ANSWER_SECONDS = 20.0
# What one node more costs this machine at the start and at the end, where all of them want it at once.
SECONDS_PER_NODE = 0.02


def scaled_timeout(seconds: float, nodes: int) -> float:
    return seconds + nodes * SECONDS_PER_NODE


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
    seconds = scaled_timeout(END_SECONDS, len(connections))
    return close_together(
        [(connection.channel, not connection.silent) for connection in connections], seconds
    )


def stop_all(connections: Iterable[AgentConnection]) -> None:
    """Tell every agent to end before waiting for any of them."""
    stopping = list(connections)
    for connection in stopping:
        connection.send({"do": "stop"})
    close_all(stopping)


# How often it is looked whose heartbeat is due.
HEARTBEAT_TICK_SECONDS = 0.25


class Poller:
    """Waits for what agents send, and meanwhile sends what waits to be sent, heartbeats included."""

    def __init__(self, connections: Iterable[AgentConnection] = ()) -> None:
        self._selector = selectors.DefaultSelector()
        self._connections: dict[AgentConnection, None] = {}
        self._writing: set[AgentConnection] = set()
        self._heartbeat_due = 0.0
        self.clock = ListeningClock()
        for connection in connections:
            self.add(connection)

    def __enter__(self) -> Poller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, connection: AgentConnection) -> None:
        """One that is closed already is left out; its silence counts from now on."""
        if connection.closed is not None:
            return
        connection.heard = self.clock.now
        self._connections[connection] = None
        connection.poller = self
        self._selector.register(connection.incoming, selectors.EVENT_READ, connection)
        if connection.unsent:
            self.watch_backlog(connection)

    def remove(self, connection: AgentConnection) -> None:
        """Before its descriptors are closed."""
        if connection not in self._connections:
            return
        del self._connections[connection]
        connection.poller = None
        for descriptor in {
            connection.incoming,
            *([connection.outgoing] if connection in self._writing else []),
        }:
            self._selector.unregister(descriptor)
        self._writing.discard(connection)

    def close(self) -> None:
        for connection in self._connections:
            connection.poller = None
        self._connections.clear()
        self._selector.close()

    def watch_backlog(self, connection: AgentConnection) -> None:
        """Send the rest of the backlog as soon as there is room for it."""
        if connection in self._writing:
            return
        self._writing.add(connection)
        if connection.outgoing == connection.incoming:
            self._selector.modify(
                connection.incoming, selectors.EVENT_READ | selectors.EVENT_WRITE, connection
            )
        else:
            self._selector.register(connection.outgoing, selectors.EVENT_WRITE, connection)

    def wait(self, timeout: float) -> list[AgentConnection]:
        """Those with something to receive; none once `timeout` has passed or something was sent."""
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now >= self._heartbeat_due:
                self._heartbeat_due = now + HEARTBEAT_TICK_SECONDS
                for connection in list(self._connections):
                    connection.pulse(now)
            ready = []
            self.clock.look()
            happened = self._selector.select(max(0.0, min(deadline, self._heartbeat_due) - now))
            for key, events in happened:
                connection = key.data
                if events & selectors.EVENT_WRITE:
                    self._send_backlog(connection)
                if events & selectors.EVENT_READ:
                    ready.append(connection)
            if happened or time.monotonic() >= deadline:
                return ready

    def _send_backlog(self, connection: AgentConnection) -> None:
        connection.push()
        if connection.unsent:
            return
        self._writing.discard(connection)
        if connection.outgoing == connection.incoming:
            self._selector.modify(connection.incoming, selectors.EVENT_READ, connection)
        else:
            self._selector.unregister(connection.outgoing)


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
    limit = scaled_timeout(ANSWER_SECONDS, len(connections)) if limit is None else limit
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
