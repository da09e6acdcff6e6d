"""The steady window of a trial: where its warm-up ends, or the verdict that it never does."""

from __future__ import annotations

import numpy as np

from trainmark.measure.figure import Verdict, Window
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.statistics.changes import relevant, segments
from trainmark.measure.statistics.drift import drifts, ends_differ
from trainmark.measure.trial.startup import outlying_steps, startup_steps

# A level held for less than a quarter of the run may be one more phase of it: Barrett et al. (2017) ask
# for the last 500 of 2,000 iterations.
SMALLEST_STEADY_SHARE = 0.25

# Fewer steps than this cannot tell warm-up from work.
SHORTEST_WINDOW = 10


def steady_window(step_seconds: Floats, floor: int = 0, shortest: int = SHORTEST_WINDOW) -> Window:
    """The steps to take the figure from; the first `floor` are dropped whatever they look like.

    The steady part is the last level found by change points, joined with those before it that do not
    relevantly differ from it (Barrett et al. 2017), less the start-up steps at its head. Stalls that
    come back throughout the run are part of its level. A run that never settles keeps all but its
    first outlying steps, so that the figure beside the verdict is that of the run as a whole.
    """
    steps = len(step_seconds)
    floor = min(floor, steps)
    work = np.asarray(step_seconds[floor:], dtype=np.float64)
    head = outlying_steps(work)
    if len(work) < shortest:
        return Window(floor + head, steps, Verdict.TOO_SHORT)
    first = _last_level(work[head:]) + head
    first += startup_steps(work[first:])
    if len(work) - first < SMALLEST_STEADY_SHARE * len(work) or _moves(work[head:], work[first:]):
        return Window(floor + head, steps, Verdict.NEVER_SETTLED)
    verdict = Verdict.SETTLED if len(work) - first >= shortest else Verdict.TOO_SHORT
    return Window(floor + first, steps, verdict)


def _moves(run: Floats, steady: Floats) -> bool:
    return drifts(run) or drifts(steady) or ends_differ(steady)


def _last_level(seconds: Floats) -> int:
    """Where the last level begins, equivalent ones before it included."""
    levels = [(first, float(np.median(seconds[first:stop]))) for first, stop in segments(seconds)]
    begin, last = levels[-1]
    for first, level in reversed(levels[:-1]):
        if relevant(level, last):
            break
        begin = first
    return begin
