"""Change points and drift in step times.

Change points are found by ranks: one stall of a minute weighs no more than one of a second. Drifting are
step times that keep changing instead of coming to rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trainmark.measure.statistics import Floats

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


def midranks(values: Floats) -> Floats:
    """Ranks from 1, ties sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse.reshape(-1)], dtype=np.float64)


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
NORMAL_MEDIAN = 0.6745  # of the absolute deviation, in standard deviations

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
    if freedom < 1 or explained * freedom < _steep(freedom) ** 2 * (1 - explained):
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


def _steep(freedom: float) -> float:
    """The quantile of Student's t that `STEEP` is of the normal distribution (Cornish & Fisher 1938)."""
    z = STEEP
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


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
