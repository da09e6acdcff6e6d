"""The steady window of a trial: where its warm-up ends, or the verdict that it never does.

The first steps of a run are too few for a change point, and often the slowest of all.
"""

from __future__ import annotations

import math

import numpy as np

from trainmark.measure.change_points import (
    RELEVANT_CHANGE,
    SHORTEST_SEGMENT,
    ends_differ,
    is_drifting,
    is_relevant_change,
    level_segments,
    midranks,
    rank_sums,
    share_around_cuts,
)
from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.statistics import Floats

# Standard errors by which a beginning must rank apart. The largest of all beginnings of a level run
# of 10,000 independent steps stays below it in 99 of 100 runs.
APART = 4.0

# Start-up is looked for here; longer warm-ups are change points.
LONGEST_LOOK = 10_000

# A normal deviate this large comes once in 3.5 million steps.
OUTLYING_DEVIATIONS = 5.0

# Slow steps that come back throughout a run (checkpoints, loader stalls) are no start-up: a start-up step
# stands half as far again above the median as this quantile does.
RECURRING_QUANTILE = 0.95
BEYOND_RECURRING = 1.5

# 1.4826 makes the median absolute deviation of normal noise its standard deviation.
MAD_TO_SIGMA = 1.4826


def startup_steps(seconds: Floats) -> int:
    """How many leading steps are start-up rather than the level that follows."""
    cut = outlying_steps(seconds)
    beginning = seconds[:LONGEST_LOOK]
    while more := _ranked_apart(beginning[cut:]):
        cut += more
    return cut + outlying_steps(seconds[cut:])


def outlying_steps(seconds: Floats) -> int:
    """Leading steps slower than anything that the second half of the run keeps producing."""
    reference = seconds[len(seconds) // 2 :]
    if len(reference) < 2:
        return 0
    median = float(np.median(reference))
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(reference - median)))
    recurring = float(np.quantile(reference, RECURRING_QUANTILE))
    limit = median + max(OUTLYING_DEVIATIONS * sigma, BEYOND_RECURRING * (recurring - median))
    limit = max(limit, median * (1 + RELEVANT_CHANGE))
    leading = seconds[: len(seconds) // 2]
    ordinary = np.flatnonzero(leading <= limit)
    return int(ordinary[0]) if ordinary.size else len(leading)


def _ranked_apart(seconds: Floats) -> int:
    """The beginning, up to half of the steps, that ranks most clearly apart from what follows it, or 0.

    Pettitt's statistic over its standard error at each cut: unlike its plain maximum, which
    favours the middle, this sees a warm-up of six steps in a thousand (cf. Ross et al. 2011).
    """
    n = len(seconds)
    if n < 2 * SHORTEST_SEGMENT:
        return 0
    ranks = midranks(seconds)
    cuts = np.arange(SHORTEST_SEGMENT, n // 2 + 1)
    scores = np.abs(rank_sums(ranks)[cuts - 1]) / np.sqrt(cuts * (n - cuts) * (n + 1) / 3)
    best = int(np.argmax(scores))
    cut = int(cuts[best])
    if float(scores[best]) * math.sqrt(share_around_cuts(ranks, [cut])) < APART:
        return 0
    return cut if is_relevant_change(float(np.median(seconds[:cut])), float(np.median(seconds[cut:]))) else 0


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
        return Window(floor + head, steps, WindowVerdict.TOO_SHORT)
    first = _last_level(work[head:]) + head
    first += startup_steps(work[first:])
    if len(work) - first < SMALLEST_STEADY_SHARE * len(work) or _moves(work[head:], work[first:]):
        return Window(floor + head, steps, WindowVerdict.NEVER_SETTLED)
    verdict = WindowVerdict.SETTLED if len(work) - first >= shortest else WindowVerdict.TOO_SHORT
    return Window(floor + first, steps, verdict)


def _moves(run: Floats, steady: Floats) -> bool:
    return is_drifting(run) or is_drifting(steady) or ends_differ(steady)


def _last_level(seconds: Floats) -> int:
    """Where the last level begins, equivalent ones before it included."""
    levels = [(first, float(np.median(seconds[first:stop]))) for first, stop in level_segments(seconds)]
    begin, last = levels[-1]
    for first, level in reversed(levels[:-1]):
        if is_relevant_change(level, last):
            break
        begin = first
    return begin
