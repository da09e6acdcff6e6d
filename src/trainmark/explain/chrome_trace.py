"""Kineto's trace (Chrome's JSON form, plain or gzip) becomes a Profile, in one pass and bounded memory."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from trainmark.base.errors import UserError
from trainmark.explain.json_stream import MOST_BYTES, JsonError, JsonStream, TruncatedError, text_chunks
from trainmark.explain.nesting import operators_of, self_times
from trainmark.explain.profile import DeviceSpans, HostKind, HostSpans, Profile, ProfiledStep
from trainmark.explain.step_ends import steps_of
from trainmark.explain.trace_events import EventError, EventReader, TooLargeError
from trainmark.view.message import _

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
                self.notes = [_("The profiler ran out of buffers and ended the recording early.")]

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


# Each takes about 200 bytes at most while the columns are made.
MOST_SPANS = 10_000_000

Spans = TypeVar("Spans", DeviceSpans, HostSpans)


def read(
    path: Path,
    step_seconds: float | None = None,
    *,
    limit: int = MOST_SPANS,
    most_bytes: int = MOST_BYTES,
) -> Profile:
    """Read a trace; UserError, one sentence, where it is none, damaged or holds more than `limit` spans.

    `step_seconds` is how long a step takes, where that is known: a trace may not say where one ends.
    """
    stream = JsonStream(text_chunks(path, most_bytes))
    events, metadata = EventReader(limit), Metadata()
    try:
        _walk(stream, events, metadata)
        return _profile(events, metadata, step_seconds)
    except TruncatedError as error:
        raise UserError(
            f"{path} is cut short: {error}, after {events.count:,} events; take the profile again."
        ) from None
    except JsonError as error:
        raise UserError(f"{path} is not valid JSON: {error}, after {events.count:,} events.") from None
    except EventError as error:
        raise UserError(f"{path} is not a sound trace: event {events.count:,} {error}.") from None
    except TooLargeError as error:
        raise UserError(f"{path} is too large: it holds {error}; profile fewer steps.") from None
    except _IncompleteError as error:
        raise UserError(f"{path} {error}.") from None


class _IncompleteError(ValueError):
    """A trace that lacks what a profile is made of."""


def _walk(stream: JsonStream, events: EventReader, metadata: Metadata) -> None:
    first = stream.peek()
    if first == "[":
        events.read(stream.elements())
    elif first == "{":
        has_events = False
        for name in stream.members():
            if name != "traceEvents":
                metadata.read(name, stream.value())
            elif stream.peek() in ("[", ""):
                has_events = True
                events.read(stream.elements())
            else:
                raise _IncompleteError("is no trace: its traceEvents are no list")
        if not has_events:
            raise _IncompleteError("is no trace: it has no traceEvents")
    else:
        raise _IncompleteError("is no trace: it is not JSON" if first else "is no trace: it is empty")
    if stream.peek():
        raise JsonError(f"more text after the end at character {stream.place:,}")


def _profile(events: EventReader, metadata: Metadata, step_seconds: float | None) -> Profile:
    """Join the columns of one device with the host's, and make out the steps."""
    host = _shifted(events.host.host_spans(), metadata.base)
    has_operators = bool((host.kind == HostKind.OPERATOR).any())
    if not events.devices and not has_operators:
        raise _IncompleteError(
            "has no kernels and no operators: "
            "with PyTorch, profile with ProfilerActivity.CUDA, or .CPU on a machine without a GPU; "
            "JAX before 0.4.33 records none on a CPU"
        )
    notes = list(metadata.notes)
    if events.devices:
        device, number = "cuda", events.busiest_device()
        spans = _shifted(events.devices[number].device_spans(), metadata.base)
        spans = _attributed(spans, host)
        if others := sum(count for other, count in events.device_counts().items() if other != number):
            notes.append(
                _(
                    "{count} devices in one trace: device {device} has most records; {others} records of the"
                    " others are left out.",
                    count=len(events.devices),
                    device=number,
                    others=f"{others:,}",
                )
            )
    else:
        device, number = "cpu", 0
        spans = self_times(host)
    steps: tuple[ProfiledStep, ...] = tuple(
        ProfiledStep(step, start + metadata.base, end + metadata.base)
        for start, end, step in sorted(events.steps)
    )
    if not steps:
        steps, note = steps_of(device, spans, host, step_seconds)
        notes += [note] if note else []
    facts: dict[str, Any] = {**metadata.facts, **events.facts(), "notes": tuple(notes)}
    return Profile(
        device,
        spans,
        host,
        steps,
        metadata.rank,
        metadata.world_size,
        metadata.device_name(number),
        metadata.lost,
        facts,
    )


def _attributed(spans: DeviceSpans, host: HostSpans) -> DeviceSpans:
    """With the operator that launched each span, and with what graph launches replayed marked as such."""
    graph = [index for index, name in enumerate(host.names) if "GraphLaunch" in name]
    is_graph = (host.kind == HostKind.RUNTIME) & (host.launch >= 0) & np.isin(host.name, graph)
    in_graph = spans.in_graph | np.isin(spans.launch, host.launch[is_graph])
    return replace(spans, in_graph=in_graph, operator=operators_of(spans, host))


def _shifted(spans: Spans, base: int) -> Spans:
    """In place: a second copy of the times would only cost memory."""
    for times in (spans.start, spans.end):
        times += base
    return spans
