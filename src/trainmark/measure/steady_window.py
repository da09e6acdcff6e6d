"""The steady window of a trial: where its warm-up ends, or the verdict that it never does.

Levels of step times are found as change points by ranks: one stall of a minute weighs no more than one of a
second. The first steps of a run are too few for a change point, and often the slowest of all. Drifting are
step times that keep changing instead of coming to rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.statistics import NORMAL_MEDIAN, Floats, midranks, student_deviate

# A shift smaller than this is no change, however certain a million steps make it: it is of the order of
# the difference that six trials can still tell apart.
RELEVANT_CHANGE = 0.01

# Segmentation tests many segments of every run, so each test is far stricter than the usual 5 %.
SIGNIFICANCE = 0.002

# A segment's median needs a few steps to mean anything.
SHORTEST_SEGMENT = 5

# Longer runs are first reduced to medians of consecutive steps; a boundary is then known to a five
# thousandth of the run.
MOST_POINTS = 5_000


def level_segments(seconds: Floats) -> list[tuple[int, int]]:
    """Stretches `[first, stop)` of steps whose neighbours are on relevantly different levels.

    Binary segmentation (Scott & Knott 1974) cuts wherever a change is certain; then neighbours that do not
    relevantly differ are merged again, the most alike first.
    """
    size = -(-len(seconds) // MOST_POINTS)
    points = batch_medians(seconds, size)
    inner = _merged(points, _cuts(points, 0))
    bounds = [0, *(cut * size for cut in inner), len(seconds)]
    return list(pairwise(bounds))


def batch_medians(seconds: Floats, size: int) -> Floats:
    """Medians of consecutive batches; steps that do not fill the last batch are left out."""
    if size == 1:
        return seconds
    whole = len(seconds) // size
    return np.asarray(np.median(seconds[: whole * size].reshape(whole, size), axis=1), dtype=np.float64)


def is_relevant_change(before: float, after: float) -> bool:
    return abs(before - after) > RELEVANT_CHANGE * after


def rank_sums(ranks: Floats) -> Floats:
    """Pettitt's U after each step but the last: how far the steps so far rank above the rest."""
    n = len(ranks)
    return np.asarray((2 * np.cumsum(ranks) - np.arange(1, n + 1) * (n + 1))[:-1], dtype=np.float64)


def independent_share(residuals: Floats) -> float:
    """How many independent steps one autocorrelated step is worth: (1 − ρ) ÷ (1 + ρ).

    Without it persistence alone looks like change (Serinaldi & Kilsby 2016).
    """
    power = float(residuals @ residuals)
    if power == 0:
        return 1.0
    rho = min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.99)
    return (1 - rho) / (1 + rho)


def share_around_cuts(ranks: Floats, cuts: Sequence[int]) -> float:
    """The independent share of what the cuts leave unexplained."""
    return independent_share(np.concatenate([part - part.mean() for part in np.split(ranks, cuts)]))


def _cuts(points: Floats, offset: int) -> list[int]:
    """All certain changes, in order; positions count from `offset`."""
    cuts = _change(points)
    positions: list[int] = []
    for first, stop in pairwise([0, *cuts, len(points)]) if cuts else ():
        positions += [*_cuts(points[first:stop], offset + first), offset + stop]
    return positions[:-1]


def _change(points: Floats) -> list[int]:
    """The most certain change of level, or both ends of the most certain episode on another level, or none.

    A change by the largest rank sum (Pettitt 1979); an episode, which leaves the levels before and after it
    alike and so hides from that test, by the range of the rank sums (Kuiper 1960). Scaled by their
    variance the rank sums of a level run are a Brownian bridge, whence both tails.
    """
    n = len(points)
    if n < 2 * SHORTEST_SEGMENT:
        return []
    ranks = midranks(points)
    bridge = rank_sums(ranks)[SHORTEST_SEGMENT - 1 : n - SHORTEST_SEGMENT] / math.sqrt((n**3 + n**2) / 3)
    highest, lowest = int(np.argmax(bridge)), int(np.argmin(bridge))
    top, bottom = float(bridge[highest]), float(bridge[lowest])
    cut = (highest if top > -bottom else lowest) + SHORTEST_SEGMENT
    height = max(top, -bottom) ** 2 * share_around_cuts(ranks, [cut])
    if 2 * math.exp(-2 * height) < SIGNIFICANCE:
        return [cut]
    if abs(highest - lowest) < SHORTEST_SEGMENT:
        return []
    episode = sorted([highest + SHORTEST_SEGMENT, lowest + SHORTEST_SEGMENT])
    extent = (top - bottom) ** 2 * share_around_cuts(ranks, episode)
    # The tail formula holds for small probabilities only, and those need an extent well above 1.
    return episode if extent > 1 and 2 * (4 * extent - 1) * math.exp(-2 * extent) < SIGNIFICANCE else []


def _merged(points: Floats, cuts: list[int]) -> list[int]:
    """The cuts that are left when neighbours on one level are joined."""
    cuts = list(cuts)
    while cuts:
        levels = [float(np.median(part)) for part in np.split(points, cuts)]
        excesses = [abs(before - after) - RELEVANT_CHANGE * after for before, after in pairwise(levels)]
        if min(excesses) > 0:
            break
        del cuts[excesses.index(min(excesses))]
    return cuts


# Medians of three steps or more take single stalls out of the line; very short runs make do with fewer.
MOST_BATCHES = 150
SMALLEST_BATCH = 3
FEWEST_BATCHES = 5

# A level may begin this late after a sudden change, and this late after a slow one: a run that ramps for
# more than half of its length is better described by the ramp.
LATEST_STEP = 0.75
LATEST_RAMP_END = 0.5

# What no noise explains: a change of this share, and of this many standard errors of independent steps;
# steps that depend on each other as strongly as they are seen to are still within a quarter of that.
PLAIN_CHANGE = 0.03
PLAIN_ERRORS = 14.0

# Standard errors by which the slope must differ from none, for many batches.
STEEP = 3.0


def is_drifting(seconds: Floats) -> bool:
    """Whether a line through the whole stretch explains it better than any way of coming to rest.

    The ways of coming to rest are a step (up to `LATEST_STEP`) and a ramp into a level (up to
    `LATEST_RAMP_END`); both pay for their corner as in Schwarz's criterion (1978).
    """
    size = max(min(SMALLEST_BATCH, len(seconds) // FEWEST_BATCHES), len(seconds) // MOST_BATCHES, 1)
    points = batch_medians(seconds, size)
    n = len(points)
    if n < FEWEST_BATCHES:
        return False
    at = np.arange(n) - (n - 1) / 2
    centred = points - points.mean()
    slope = float(at @ centred) / float(at @ at)
    spread = float(centred @ centred)
    # Steps of no length at all have no spread to explain.
    if spread == 0 or abs(slope) * n <= RELEVANT_CHANGE * float(np.median(points)):
        return False
    residuals = centred - slope * at
    unexplained = float(residuals @ residuals)
    explained = 1 - unexplained / spread
    independent = n * independent_share(residuals)
    freedom = independent - 2
    if freedom < 1 or explained * freedom < student_deviate(STEEP, freedom) ** 2 * (1 - explained):
        return False
    corner_price = math.exp(math.log(independent) / independent)
    return unexplained < _unexplained_at_rest(centred) * corner_price


def ends_differ(seconds: Floats) -> bool:
    """Whether the last quarter is plainly not at the first one's level, whatever lies between.

    A smooth, strong drift leaves so few independent points that no test of a line is sure of it. The noise
    is taken from successive differences, which a drift hardly touches (von Neumann 1941).
    """
    quarter = len(seconds) // 4
    if quarter < 2:
        return False
    change = abs(float(np.median(seconds[-quarter:])) - float(np.median(seconds[:quarter])))
    noise = float(np.median(np.abs(np.diff(seconds)))) / NORMAL_MEDIAN / math.sqrt(2)
    level = float(np.median(seconds))
    return change > max(PLAIN_CHANGE * level, PLAIN_ERRORS * noise * math.sqrt(2 / quarter))


def _unexplained_at_rest(centred: Floats) -> float:
    """The least squared residual of a step or a ramp into a level, over all corners."""
    n = len(centred)
    at = np.arange(n, dtype=np.float64)
    steps = (at < _corners(n, LATEST_STEP)).astype(np.float64)
    ramps = np.minimum(at - _corners(n, LATEST_RAMP_END), 0)
    shapes = np.concatenate([steps, ramps])
    shapes -= shapes.mean(axis=1, keepdims=True)
    explained = (shapes @ centred) ** 2 / np.einsum("ij,ij->i", shapes, shapes)
    return float(centred @ centred) - float(explained.max())


def _corners(n: int, latest: float) -> Floats:
    return np.arange(1, int(n * latest) + 1, dtype=np.float64)[:, None]


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
