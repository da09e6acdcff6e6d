"""Kineto's trace (Chrome's JSON form, plain or gzip) becomes a Profile, in one pass and bounded memory.

Times are microseconds with a fraction, since `baseTimeNanoseconds` where the trace has one; the profile's
clock is their sum in whole nanoseconds, which is Unix time in traces of PyTorch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from trainmark.base.errors import UserError
from trainmark.explain.profile.events import EventError, EventReader, TooLargeError
from trainmark.explain.profile.json_stream import JsonError, JsonStream, TruncatedError
from trainmark.explain.profile.metadata import Metadata
from trainmark.explain.profile.model import DeviceSpans, HostKind, HostSpans, Profile, Step
from trainmark.explain.profile.nesting import operators_of, self_times
from trainmark.explain.profile.step_ends.steps import steps_of
from trainmark.explain.profile.trace_file import MOST_BYTES, text_chunks

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
                f"{len(events.devices)} devices in one trace: device {number} has most records; "
                f"{others:,} records of the others are left out."
            )
    else:
        device, number = "cpu", 0
        spans = self_times(host)
    steps: tuple[Step, ...] = tuple(
        Step(step, start + metadata.base, end + metadata.base) for start, end, step in sorted(events.steps)
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
