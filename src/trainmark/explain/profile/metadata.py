"""What a trace says beside its events: rank, devices, versions, the profiler's own warnings."""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Any

# Kineto's messages, which it puts into the trace by level.
LEVELS = ("WARNING", "ERROR")
DROPPED = re.compile(
    r"(\d{1,12}) (?:[a-zA-Z ]*records?|activities) (?:were )?(?:dropped|lost)|[Dd]ropped (\d{1,12})"
)
# When CUPTI's buffers are full, Kineto ends the recording without a count.
ENDED = re.compile(r"Exceeded max GPU buffer count|stopped early|Allocated memory failed", re.IGNORECASE)
MOST_FACTS = 100
MOST_TEXT = 200
LARGEST_BASE = 4_000_000_000_000_000_000
LARGEST = 1 << 63


class Metadata:
    """Members of the trace's object, one by one; what has an unexpected form is passed over."""

    def __init__(self) -> None:
        self.base = 0
        self.rank = 0
        self.world_size = 1
        self.device_names: dict[int, str] = {}
        self.lost = 0
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []

    def read(self, name: str, value: Any) -> None:
        if name == "baseTimeNanoseconds":
            self.base = _whole(value, LARGEST_BASE) or 0
        elif name == "distributedInfo" and isinstance(value, dict):
            self.rank = _whole(value.get("rank")) or 0
            self.world_size = max(_whole(value.get("world_size")) or 1, self.rank + 1)
            self._fact("backend", value.get("backend"))
        elif name == "deviceProperties" and isinstance(value, list):
            self._devices(value)
        elif name in LEVELS and isinstance(value, list):
            self._messages(value)
        elif name == "lost_records":
            self.lost += _whole(value) or 0
        else:
            self._fact(name, value)

    def device_name(self, number: int) -> str | None:
        """Return the name; a process that sees one of several devices may number it otherwise."""
        names = set(self.device_names.values())
        return self.device_names.get(number, names.pop() if len(names) == 1 else None)

    def _devices(self, devices: list[Any]) -> None:
        for device in devices[:MOST_FACTS]:
            if isinstance(device, dict) and isinstance(device.get("name"), str) and device["name"]:
                self.device_names[_whole(device.get("id")) or 0] = _printable(device["name"][:MOST_TEXT])

    def _messages(self, messages: list[Any]) -> None:
        for message in messages:
            if not isinstance(message, str):
                continue
            if match := DROPPED.search(message):
                self.lost += int(match[1] or match[2])
            elif ENDED.search(message):
                self.lost += 1
                self.notes = ["The profiler ran out of buffers and ended the recording early."]

    def _fact(self, name: str, value: Any) -> None:
        if len(self.facts) >= MOST_FACTS or len(name) > MOST_TEXT:
            return
        if isinstance(value, Decimal):
            value = float(value)
        if isinstance(value, str) and len(value) <= MOST_TEXT:
            self.facts[_printable(name)] = _printable(value)
        elif (isinstance(value, float) and isfinite(value)) or (
            isinstance(value, int) and abs(value) < LARGEST
        ):
            self.facts[_printable(name)] = value


def _printable(text: str) -> str:
    """JSON can hold half a surrogate pair, which nothing could print."""
    return text.encode(errors="replace").decode()


def _whole(value: Any, most: int = 1 << 31) -> int | None:
    """Kineto writes some numbers as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and 0 <= value < most else None
