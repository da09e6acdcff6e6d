"""One epoll over all connections to agents: select() takes no descriptor above 1,023."""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterable
from types import TracebackType

from trainmark.launch.agent.wire import ListeningClock
from trainmark.launch.transport.agent_connection import AgentConnection

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
