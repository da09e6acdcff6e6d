"""A post: an agent on a node as home sees it, and several of them asked at the same time."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trainmark.launch.agent.wire import ClosedError, Message, Wire
from trainmark.launch.bundle import agent_line
from trainmark.launch.channel import Channel
from trainmark.launch.node import Node, NodeError

# How long a silent node is waited for, on either side; well over a lost packet's repetition.
PATIENCE_SECONDS = 8.0
PULSE_SECONDS = 1.0
ANSWER_SECONDS = 20.0


class Post:
    """`closed` has the reason once the agent cannot be heard any more; `silent` if it may still live."""

    def __init__(self, node: Node, channel: Channel, patience: float | None = PATIENCE_SECONDS) -> None:
        self.node = node
        self.channel = channel
        self.patience = patience
        self.heard = self.pulsed = time.monotonic()
        self.closed: str | None = None
        self.gone = False
        self.silent = False
        self._wire = Wire(channel.incoming, channel.outgoing)
        self._wire.raw(agent_line())

    @property
    def incoming(self) -> int:
        return self._wire.incoming

    @property
    def outgoing(self) -> int | None:
        """Where something still waits to be sent."""
        return self._wire.outgoing if self._wire.unsent else None

    def say(self, message: dict[str, Any], payload: bytes = b"") -> None:
        if self.closed is None:
            self._wire.say(message, payload)

    def take(self) -> list[Message]:
        """What has come since; the end of the agent is noted, with the carrier's reason."""
        if self.closed is not None:
            return []
        try:
            messages = self._wire.take()
        except ClosedError as error:
            self.closed = self.channel.last_words() or f"the connection was {error}"
            return []
        if messages:
            self.heard = time.monotonic()
        self.gone = self.gone or any(message.get("event") == "gone" for message, _ in messages)
        return messages

    def catch_up(self, limit: float) -> None:
        """Returns once the node has taken nearly all that was said: a large parcel is not held in memory."""
        deadline = time.monotonic() + limit
        while self._wire.clogged and self.closed is None and time.monotonic() < deadline:
            select.select([], [self._wire.outgoing], [], PULSE_SECONDS)
            self._wire.push()

    def pulse(self) -> None:
        """Tells the agent now and then that home is there."""
        self._wire.push()
        now = time.monotonic()
        if self.patience is not None and now - self.pulsed > PULSE_SECONDS:
            self.pulsed = now
            self.say({"do": "alive"})

    def mind_silence(self) -> None:
        silent = time.monotonic() - self.heard
        if self.closed is None and self.patience is not None and silent > self.patience:
            self.silent = True
            self.closed = f"nothing was heard of it for {self.patience:.0f} s"

    def close(self) -> int | None:
        if self.closed is None:
            self.closed = "closed"
        return self.channel.close(patient=not self.silent)


def heard_from(posts: Sequence[Post], timeout: float) -> list[int]:
    """The `incoming` of those that said something; what waits to be sent to the others is sent meanwhile."""
    deadline = time.monotonic() + timeout
    while True:
        left = max(0.0, deadline - time.monotonic())
        sending = [post.outgoing for post in posts if post.outgoing is not None]
        wait = min(left, PULSE_SECONDS)
        ready, writable, _ = select.select([post.incoming for post in posts], sending, [], wait)
        for post in posts:
            post.pulse()
        if ready or not (left and (writable or posts)):
            return ready


def gather(
    posts: Sequence[Post],
    event: str,
    limit: float = ANSWER_SECONDS,
    stop_asked: Callable[[], bool] | None = None,
) -> list[Message | NodeError]:
    """One `event` of each, in their order, or why it did not come; other messages meanwhile are dropped."""
    deadline = time.monotonic() + limit
    found: dict[int, Message | NodeError] = {}
    while len(found) < len(posts) and not (stop_asked and stop_asked()):
        waiting = [index for index in range(len(posts)) if index not in found]
        ready = heard_from([posts[index] for index in waiting], 0.1)
        for index in waiting:
            post = posts[index]
            for message, payload in post.take() if post.incoming in ready else []:
                if message.get("event") == event:
                    found[index] = ({**message, "received": time.time()}, payload)
                elif message.get("event") == "trouble":
                    found[index] = NodeError(post.node.name, str(message.get("reason")))
            post.pulse()
            if post.closed is not None:
                found.setdefault(index, NodeError(post.node.name, post.closed))
            elif time.monotonic() > deadline:
                found.setdefault(index, NodeError(post.node.name, f"no answer within {limit:.0f} s"))
    stopped = "stopped by the user"
    return [found.get(index, NodeError(post.node.name, stopped)) for index, post in enumerate(posts)]


T = TypeVar("T")


def answers(found: Sequence[T | NodeError]) -> list[T]:
    """All of them; the first node that gave none is raised."""
    for each in found:
        if isinstance(each, NodeError):
            raise each
    return [each for each in found if not isinstance(each, NodeError)]
