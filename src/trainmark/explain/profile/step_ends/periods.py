"""Steps of a trace without annotations: a training launches the same kernels again in every step.

An n-gram of kernels that occurs once a step recurs at even distances, whatever is repeated within the step.
Each such distance is a candidate, verified by the kernels in between, which must be the same in all steps.
Their order may differ: NCCL's kernels change places.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.classes import OPTIMISER
from trainmark.explain.classes.names import class_of_name
from trainmark.explain.profile.model import DeviceKind, DeviceSpans, Indices, Step
from trainmark.explain.profile.step_ends.candidates import Candidate, chosen
from trainmark.explain.profile.step_ends.recurrence import Integers, Runs, bags, even_runs, groups_by_period

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

    steps: tuple[Step, ...]
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
            steps = tuple(Step(number, *edge) for number, edge in enumerate(pairwise(edges)))
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
        np.array([class_of_name(spans.names[row]) == OPTIMISER for row in used.tolist()]),
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
