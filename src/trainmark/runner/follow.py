"""A glance at a running trial: how far rank 0 is, and how fast all ranks go."""

from __future__ import annotations

import contextlib
from collections import deque
from pathlib import Path

from trainmark.events import Step
from trainmark.events.stream import StreamError, decode

RECENT_STEPS = 10


class Follower:
    """Reads what has been added to one rank's events since the last look; cheap enough for every tick."""

    def __init__(self, events: Path, world_size: int) -> None:
        self._events = events
        self._world_size = world_size
        self._read = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT_STEPS)
        self.steps = 0

    def look(self) -> None:
        try:
            with self._events.open("rb") as file:
                file.seek(self._read)
                added = file.read()
        except OSError:
            return
        whole, newline, _ = added.rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for line in whole.splitlines():
            with contextlib.suppress(StreamError, OverflowError):
                event = decode(line)
                if isinstance(event, Step) and event.mono is not None:
                    self._recent.append((float(event.mono), float(event.samples or 0.0)))
                    self.steps = event.step + 1

    @property
    def rate(self) -> float | None:
        if len(self._recent) < 2 or self._recent[-1][0] <= self._recent[0][0]:
            return None
        samples = sum(count for _, count in list(self._recent)[1:])
        return self._world_size * samples / (self._recent[-1][0] - self._recent[0][0])
