"""Steps that take longer than training does: marked pauses are in no step, a long step may contain one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainmark.events.ranges import number_in, text_in
from trainmark.measure.figure import Pauses, Window
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.trial.trace import Trace

# More steps than this are no exception, whatever they take.
MOST_LONG_SHARE = 0.2


@dataclass(frozen=True)
class Rule:
    """From which multiple of the median on a step is long, and from which share of the time on it counts."""

    times: float
    share: float
    regular: bool


# What comes back at one distance is no noise. What does not is a stall as often as an evaluation, and batches
# of unequal lengths are neither: only a few steps that stand far out raise a doubt.
RULES = (Rule(1.5, 0.02, regular=True), Rule(3.0, 0.1, regular=False))
FEWEST_REGULAR, REGULAR_SHARE = 3, 0.75


@dataclass(frozen=True)
class LongSteps:
    """`seconds` is what they take beyond the median step; `every` is their distance where there is one."""

    count: int
    seconds: float
    every: int | None
    usual_seconds: float


def long_steps(step_seconds: Floats, data_wait: Floats | None) -> LongSteps | None:
    """A few steps that take a share of the time; waiting for data has a doubt of its own, and is training."""
    work = step_seconds if data_wait is None else np.maximum(step_seconds - data_wait, 0.0)
    usual = float(np.median(work)) if len(work) else 0.0
    for rule in RULES if usual > 0 else ():
        places = np.flatnonzero(work > rule.times * usual)
        seconds = float((work[places] - usual).sum())
        if not 0 < len(places) <= MOST_LONG_SHARE * len(work) or seconds < rule.share * step_seconds.sum():
            continue
        every = _distance(np.diff(places).tolist())
        if every is not None or not rule.regular:
            return LongSteps(len(places), seconds, every, usual)
    return None


def _distance(gaps: list[int]) -> int | None:
    if len(gaps) < FEWEST_REGULAR - 1:
        return None
    gap, count = Counter(gaps).most_common(1)[0]
    return gap if count >= REGULAR_SHARE * len(gaps) else None


def pauses_in(trace: Trace, window: Window) -> tuple[Pauses, ...]:
    """The pauses within the window that are in no step, by what they were; the first of all ranks tells."""
    numbers = range(len(trace.ends)) if trace.numbers is None else trace.numbers
    inside = set(map(int, numbers[window.first : window.stop]))
    seconds: dict[str, list[float]] = {}
    for kind, lasted in _pause_seconds(trace, inside):
        seconds.setdefault(kind, []).append(lasted)
    return tuple(Pauses(kind, len(each), sum(each)) for kind, each in seconds.items())


def _pause_seconds(trace: Trace, inside: set[int]) -> Iterable[tuple[str, float]]:
    for mark in trace.marks:
        kind, lasted = text_in(mark.facts, "pause"), number_in(mark.facts, "seconds")
        if mark.rank == 0 and mark.ends_a_pause and mark.step in inside and kind and lasted is not None:
            yield kind, lasted
