"""Where the steps of a profile end: at the last device span that a step's annotation launched.

Without annotations, steps are made out by the kernels that repeat.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile.model import DeviceSpans, HostKind, HostSpans, Nanoseconds, Step
from trainmark.explain.profile.step_ends.periods import steps_by_repetition

# Ours first; then what `torch.profiler`'s own schedule writes.
ANNOTATIONS = (re.compile(r"trainmark_step#(\d{1,9})"), re.compile(r"ProfilerStep#(\d{1,9})"))
ARRIVED = "trainmark_arrived"


def steps_of(
    device: str, spans: DeviceSpans, host: HostSpans, step_seconds: float | None = None
) -> tuple[tuple[Step, ...], str | None]:
    """Return the steps, without a gap between them, and a note on how they were made out where it matters.

    Annotation i-1 gives where step i begins, as events at the ends of the steps would measure it: the first
    annotation has no step of its own, unless there is no other.
    """
    numbers, starts, ends = _annotations(host)
    if not numbers:
        return _unannotated(device, spans, host, step_seconds)
    boundaries = _host_ends(host, ends) if device == "cpu" else _device_ends(spans, host, starts, ends)
    if len(numbers) == 1:
        note = "One step annotation: the step begins with it, whatever the device still had to do by then."
        first = min(int(starts[0]), int(boundaries[0]))
        return (Step(numbers[0], first, int(boundaries[0])),), note
    boundaries = np.maximum.accumulate(boundaries)
    edges = zip(numbers[1:], boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True)
    return tuple(Step(number, start, end) for number, start, end in edges), None


def _annotations(host: HostSpans) -> tuple[list[int], Nanoseconds, Nanoseconds]:
    """Return number, start and end of the step annotations by start; the first of equal numbers counts."""
    for pattern in ANNOTATIONS:
        names = {
            index: int(match[1])
            for index, name in enumerate(host.names)
            if (match := pattern.fullmatch(name))
        }
        is_step = (host.kind == HostKind.ANNOTATION) & np.isin(host.name, list(names))
        rows: dict[int, int] = {}
        for row in np.flatnonzero(is_step).tolist():
            rows.setdefault(names[int(host.name[row])], row)
        if rows:
            chosen = list(rows.values())
            return list(rows), host.start[chosen], host.end[chosen]
    nothing = np.zeros(0, np.int64)
    return [], nothing, nothing


def _host_ends(host: HostSpans, ends: Nanoseconds) -> Nanoseconds:
    """Return when the steps were over: threads of XLA go on long after a program has given them a step.

    Capture's clock marks each arrival in the thread that waits for it, where there is one.
    """
    arrived = [index for index, name in enumerate(host.names) if name == ARRIVED]
    arrivals = np.sort(host.end[(host.kind == HostKind.ANNOTATION) & np.isin(host.name, arrived)])
    return arrivals if len(arrivals) == len(ends) else ends


def _unannotated(
    device: str, spans: DeviceSpans, host: HostSpans, step_seconds: float | None
) -> tuple[tuple[Step, ...], str]:
    repetition = None if device == "cpu" else steps_by_repetition(spans, step_seconds)
    if repetition is None:
        return _whole(spans, host), "No step annotations: everything recorded is taken as one step."
    steps, kernels = repetition
    made_out = f"{len(steps):,} steps were made out by the kernels that repeat ({kernels:,} a step)"
    return steps, f"No step annotations: {made_out}."


def _whole(spans: DeviceSpans, host: HostSpans) -> tuple[Step, ...]:
    columns: DeviceSpans | HostSpans = spans if len(spans) else host
    return (Step(0, int(columns.start.min()), int(columns.end.max())),) if len(columns) else ()


def _device_ends(spans: DeviceSpans, host: HostSpans, starts: Nanoseconds, ends: Nanoseconds) -> Nanoseconds:
    """Return the end of the last device span launched inside each annotation.

    A span whose call was not recorded counts for the annotation in which it started. Where an annotation
    launched nothing that was recorded, the device's part of it ended with the last span before.
    """
    calls = launch_times(spans, host)
    calls = np.where(calls < 0, spans.start, calls)
    number = np.searchsorted(starts, calls, side="right") - 1
    inside = (number >= 0) & (calls < ends[number])
    boundaries = np.full(len(starts), np.iinfo(np.int64).min)
    np.maximum.at(boundaries, number[inside], spans.end[inside])
    empty = boundaries == np.iinfo(np.int64).min
    if empty.any():
        # The last span that started before the annotation's end, or the annotation's end itself.
        last = np.searchsorted(spans.start, ends, side="left")
        latest = np.maximum.accumulate(spans.end)
        by_time = np.where(last > 0, latest[(last - 1).clip(min=0)], ends) if len(spans) else ends
        boundaries = np.where(empty, by_time, boundaries)
    return boundaries


def launch_times(spans: DeviceSpans, host: HostSpans) -> npt.NDArray[np.int64]:
    """Return when the host call that launched each device span began, -1 where it was not recorded."""
    rows = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    times = np.full(len(spans), -1, np.int64)
    if len(rows):
        rows = rows[np.argsort(host.launch[rows], kind="stable")]
        at = np.searchsorted(host.launch[rows], spans.launch).clip(max=len(rows) - 1)
        known = (spans.launch >= 0) & (host.launch[rows[at]] == spans.launch)
        times[known] = host.start[rows[at[known]]]
    return times
