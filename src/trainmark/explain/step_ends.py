"""Where the steps of a trace end: by annotations, else by the kernels that repeat."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.kernel_classes import OPTIMIZER, class_of_name
from trainmark.explain.nesting import runtime_rows
from trainmark.explain.profile import (
    DeviceKind,
    DeviceSpans,
    HostKind,
    HostSpans,
    Indices,
    Nanoseconds,
    ProfiledStep,
)
from trainmark.view.message import _

ORDERS = 5  # n-grams of 1, 2, 4, 8 and 16

Integers = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Evenly spaced occurrences of n-grams: run i is `ends[first[i] : first[i] + length[i] + 1]`.

    `ends` has the last element of each n-gram; `length` counts distances and is at least 2.
    """

    ends: Integers
    first: Integers
    length: Integers
    period: npt.NDArray[np.float64]  # mean distance

    def places(self, runs: Integers, length: int) -> Integers:
        """Return where the first `length` + 1 n-grams of each run end."""
        at: Integers = self.ends[self.first[runs, None] + np.arange(length + 1)]
        return at


def even_runs(sequence: Integers, least_covered: float) -> Runs:
    """Return the runs that cover a share of the sequence; one distance may differ from the next by a tenth.

    Each n-gram is numbered by its two halves (Karp, Miller and Rosenberg 1972), so all take one sort a size.
    """
    numbers, size, base = sequence, 1, 0
    found: list[tuple[Integers, Integers, Integers, Integers]] = []
    for _order in range(ORDERS):
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        same = ordered[1:] == ordered[:-1]
        distance = np.diff(order)
        tolerance = (np.minimum(distance[1:], distance[:-1]) + 7) // 10
        even = same[1:] & same[:-1] & (np.abs(np.diff(distance)) <= tolerance)
        edges = np.flatnonzero(np.diff(even.astype(np.int8), prepend=0, append=0))
        first, length = edges[::2], edges[1::2] - edges[::2] + 1
        extent = order[first + length] - order[first]
        covers = extent + extent / length >= least_covered * len(sequence)
        found.append((order + size - 1, base + first[covers], length[covers], extent[covers]))
        if len(numbers) <= size:
            break
        base += len(order)
        dense = np.empty_like(numbers)
        dense[order] = np.concatenate(([0], np.cumsum(~same)))
        numbers = dense[:-size] * len(dense) + dense[size:]
        size *= 2
    ends, first, length, extent = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return Runs(ends, first, length, extent / length)


def groups_by_period(runs: Runs, ratio: float) -> list[Integers]:
    """Return the runs of about the same period together, the least period first."""
    order = np.argsort(runs.period, kind="stable")
    period = runs.period[order]
    groups = np.split(order, np.flatnonzero(period[1:] > ratio * period[:-1]) + 1)
    return [group for group in groups if len(group)]


class Bags(NamedTuple):
    """How often each kind of element is in a part of a sequence, and how much the parts differ in this."""

    typical: Integers  # the median over the parts, of an even number the lower one
    above: Integers  # elements beyond it, of all parts
    below: Integers  # elements that parts have less


def bags(sequence: Integers, ends: Integers, kinds: int) -> Bags:
    """Compare the parts, each from after one of `ends` to the next, whatever the order within them."""
    parts = len(ends) - 1
    part = np.repeat(np.arange(parts), np.diff(ends))
    keys, counts = np.unique(part * kinds + sequence[ends[0] + 1 : ends[-1] + 1], return_counts=True)
    kind = keys % kinds
    order = np.lexsort((counts, kind))
    present = np.bincount(kind, minlength=kinds)
    rank = (parts - 1) // 2 - (parts - present)  # among the parts that have the kind
    at = np.cumsum(present) - present + rank
    typical = np.where(rank >= 0, counts[order][at.clip(0, len(order) - 1)], 0)
    above = np.bincount(kind, np.maximum(counts - typical[kind], 0), kinds).astype(np.int64)
    return Bags(typical, above, parts * typical + above - np.bincount(kind, counts, kinds).astype(np.int64))


# Share of the kernels or of their time. What is in every tenth step only is logging; if it is more than this,
# it is the optimizer, and the ten are micro-batches.
MOST_RARE = 0.005
EXPECTED_WITHIN = 0.2


class Candidate(NamedTuple):
    """A length that repeats, with what speaks for it."""

    ends: Integers  # the last kernel of each step, and before them that of the step before
    seconds: float
    rare: float  # share of kernels, or of their time, that is not in every step
    is_complete: bool  # with the optimizer's kernels, where any are known
    is_certain: bool  # no block of layers


def chosen(candidates: list[Candidate], expected_seconds: float | None) -> Integers | None:
    """Return the ends of the steps; `candidates` are from the shortest to the longest."""
    steps = [candidate for candidate in candidates if candidate.is_complete]
    while steps and not steps[-1].is_certain:
        steps.pop()
    # No block of layers is repeated on and on through several steps, so what is may be a step itself.
    steps = [step for step in steps if _overlap(step.ends, steps[-1].ends) > 0.5]
    if expected_seconds is not None:
        several = [_several(step, round(expected_seconds / step.seconds)) for step in steps]
        for choices in (candidates, several):
            nearest = min(choices, key=lambda choice: abs(choice.seconds - expected_seconds), default=None)
            if nearest and abs(nearest.seconds - expected_seconds) <= EXPECTED_WITHIN * expected_seconds:
                return nearest.ends
    for number, step in enumerate(steps):
        if all(step.rare <= longer.rare + MOST_RARE for longer in steps[number + 1 :]):
            return step.ends
    return None


def _overlap(ends: Integers, others: Integers) -> float:
    """Return the share of others that lies within."""
    return float((min(ends[-1], others[-1]) - max(ends[0], others[0])) / (others[-1] - others[0]))


def _several(step: Candidate, count: int) -> Candidate:
    """Return `count` of them as one, where at least two such remain."""
    if count < 2 or len(step.ends) <= 2 * count:
        return step
    return step._replace(ends=step.ends[::-count][::-1], seconds=step.seconds * count)


FEWEST_KERNELS = 10  # three kernels of one name are no repetition
MOST_KERNELS = 1 << 20  # the last ones; they take 2 s and 0.2 GB
LEAST_COVERED = 1 / 3  # of the kernels, and of their time; the rest may be warm-up or evaluation
SAME_PERIOD = 1.05  # ratio of two mean distances
MOST_DIFFERENT = 0.02  # share of the kernels that are not in every step
MOST_SKIPPED = 0.2  # of the optimizer's kernels: a gradient scaler skips steps that overflow
# Blocks of layers are repeated too, but have fewer kernels.
MORE_THAN_A_BLOCK = 500


class Repetition(NamedTuple):
    """Steps without a gap between them, and the median number of kernels in one."""

    steps: tuple[ProfiledStep, ...]
    kernels: int


class _Sequence(NamedTuple):
    """Kernels in order of start."""

    name: Integers  # numbers from 0, all of which occur
    time: Integers
    end: Integers
    idle_after: Integers
    may_end_step: npt.NDArray[np.bool_]
    is_update: npt.NDArray[np.bool_]  # for each name: known as an optimizer's


def steps_by_repetition(spans: DeviceSpans, expected_seconds: float | None = None) -> Repetition | None:
    """Return the steps that the order of the kernels shows, None where no three whole ones repeat.

    The stream with most kernels is tried first, as the order between streams varies. Of several possible
    steps the shortest is taken, or with `expected_seconds` the one nearest to it within 20 %.
    """
    kernels = np.flatnonzero(spans.kind == DeviceKind.KERNEL)[-MOST_KERNELS:]
    if len(kernels) < FEWEST_KERNELS:
        return None
    streams, stream = np.unique(spans.stream[kernels], return_inverse=True)
    busiest = kernels[stream == np.argmax(np.bincount(stream))]
    for rows in (busiest, kernels)[: len(streams)]:
        ends = chosen(_candidates(spans, rows), expected_seconds)
        if ends is not None:
            edges = np.maximum.accumulate(spans.end[rows[ends]]).tolist()
            steps = tuple(ProfiledStep(number, *edge) for number, edge in enumerate(pairwise(edges)))
            return Repetition(steps, int(np.median(np.diff(np.searchsorted(kernels, rows[ends])))))
    return None


def _candidates(spans: DeviceSpans, rows: Integers) -> list[Candidate]:
    """Return what may be a step, the shortest first."""
    used, name = np.unique(spans.name[rows], return_inverse=True)
    runs = even_runs(name, LEAST_COVERED)
    if not len(runs.first):
        return []
    sequence = _sequence(spans, rows, used, name)
    anchors = [_anchor(sequence, runs, group) for group in groups_by_period(runs, SAME_PERIOD)]
    verified = [_verified(sequence, ends) for ends in anchors if ends is not None]
    return [candidate for candidate in verified if candidate is not None]


def _sequence(spans: DeviceSpans, rows: Integers, used: Indices, name: Integers) -> _Sequence:
    start, end, launch = spans.start[rows], spans.end[rows], spans.launch[rows]
    # All kernels that a graph replays have the launch of the graph: no step ends between two of them.
    within_graph = spans.in_graph[rows][:-1] & (launch[:-1] == launch[1:]) & (launch[:-1] >= 0)
    return _Sequence(
        name,
        end - start,
        end,
        np.append(start[1:] - end[:-1], 0),
        np.append(~within_graph, True),
        np.array([class_of_name(spans.names[row]) == OPTIMIZER for row in used.tolist()]),
    )


def _anchor(sequence: _Sequence, runs: Runs, group: Integers) -> Integers | None:
    """Return the ends of steps by that n-gram of a group after which a step most plausibly ends.

    That is the last of the optimizer's kernels where they are known by name, else the one before the longest
    idle gap.
    """
    # The record may begin and end within a step, so one n-gram may occur once more than another.
    length = max(2, int(runs.length[group].max()) - 1)
    group = group[runs.length[group] >= length]
    places = runs.places(group, length)
    unevenness = np.ptp(np.diff(places, axis=1), axis=1)
    usable = sequence.may_end_step[places].all(axis=1)
    usable &= unevenness <= unevenness.min(initial=1 << 62, where=usable) + runs.period[group] / 50
    if not usable.any():
        return None
    group, places = group[usable], places[usable]
    is_update, next_is_update = sequence.is_update[sequence.name[[places[:, 0], places[:, 0] + 1]]]
    idle = np.median(sequence.idle_after[places], axis=1)
    best = group[np.lexsort((runs.length[group], idle, is_update & ~next_is_update))[-1:]]
    return runs.places(best, int(runs.length[best[0]])).ravel()


def _verified(sequence: _Sequence, ends: Integers) -> Candidate | None:
    """Return the candidate if all its steps have the same kernels but for a few, and it is long enough."""
    first, last = int(ends[0]) + 1, int(ends[-1]) + 1
    period = int(np.median(np.diff(ends)))
    covered = sequence.time[first:last].sum() >= LEAST_COVERED * sequence.time.sum()
    matches = np.count_nonzero(sequence.name[period:] == sequence.name[:-period])
    # Two steps between ends, and before and after them what makes a third.
    if not covered or matches < 1.9 * period:
        return None
    typical, above, below = bags(sequence.name, ends, len(sequence.is_update))
    difference = max(above.sum(), below.sum()) / (last - first)
    if difference > MOST_DIFFERENT:
        return None
    inside, times = sequence.name[first:last], sequence.time[first:last]
    count = np.bincount(inside, minlength=len(typical))
    mean_time = np.bincount(inside, times, len(typical)) / count.clip(1)
    rare = max(float(difference), float(above @ mean_time / times.sum().clip(1)))
    update = sequence.is_update
    if update.any():
        skipped = max(above[update].sum(), below[update].sum()) / count[update].sum().clip(1)
        is_complete = typical[update].any() and typical[~update].any() and skipped <= MOST_SKIPPED
        is_certain, rare = is_complete, 0.0  # whatever is rare is no optimizer
    else:
        around = np.concatenate((sequence.name[:first], sequence.name[last:]))
        is_everything = max(first, len(sequence.name) - last) <= 2 * period and count[around].all()
        is_complete, is_certain = True, is_everything or period > MORE_THAN_A_BLOCK
    seconds = max(1, int(sequence.end[ends[-1]] - sequence.end[ends[0]])) / (len(ends) - 1) / 1e9
    return Candidate(ends, seconds, rare, bool(is_complete), bool(is_certain))


# Ours first; then what `torch.profiler`'s own schedule writes.
ANNOTATIONS = (re.compile(r"trainmark_step#(\d{1,9})"), re.compile(r"ProfilerStep#(\d{1,9})"))
ARRIVED = "trainmark_arrived"


def steps_of(
    device: str, spans: DeviceSpans, host: HostSpans, step_seconds: float | None = None
) -> tuple[tuple[ProfiledStep, ...], str | None]:
    """Return the steps, without a gap between them, and a note on how they were made out where it matters.

    Annotation i-1 gives where step i begins, as events at the ends of the steps would measure it: the first
    annotation has no step of its own, unless there is no other.
    """
    numbers, starts, ends = _annotations(host)
    if not numbers:
        return _unannotated(device, spans, host, step_seconds)
    boundaries = _host_ends(host, ends) if device == "cpu" else _device_ends(spans, host, starts, ends)
    if len(numbers) == 1:
        note = _("One step annotation: the step begins with it, whatever the device still had to do by then.")
        first = min(int(starts[0]), int(boundaries[0]))
        return (ProfiledStep(numbers[0], first, int(boundaries[0])),), note
    boundaries = np.maximum.accumulate(boundaries)
    edges = zip(numbers[1:], boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True)
    return tuple(ProfiledStep(number, start, end) for number, start, end in edges), None


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
) -> tuple[tuple[ProfiledStep, ...], str]:
    repetition = None if device == "cpu" else steps_by_repetition(spans, step_seconds)
    if repetition is None:
        return _whole(spans, host), _("No step annotations: everything recorded is taken as one step.")
    steps, kernels = repetition
    note = _(
        "No step annotations: {steps} steps were made out by the kernels that repeat ({kernels} a step).",
        steps=f"{len(steps):,}",
        kernels=f"{kernels:,}",
    )
    return steps, note


def _whole(spans: DeviceSpans, host: HostSpans) -> tuple[ProfiledStep, ...]:
    columns: DeviceSpans | HostSpans = spans if len(spans) else host
    return (ProfiledStep(0, int(columns.start.min()), int(columns.end.max())),) if len(columns) else ()


def _device_ends(spans: DeviceSpans, host: HostSpans, starts: Nanoseconds, ends: Nanoseconds) -> Nanoseconds:
    """Return the end of the last device span launched inside each annotation.

    A span whose call was not recorded counts for the annotation in which it started. Where an annotation
    launched nothing that was recorded, the device's part of it ended with the last span before.
    """
    rows = runtime_rows(spans, host)
    calls = np.where(rows < 0, spans.start, host.start[rows]) if len(host) else spans.start
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
