"""Where the level of a series may change: the partition of least penalised cost."""

from __future__ import annotations

import numpy as np

from trainmark.history.changes.noise import BOUND
from trainmark.measure.statistics.arrays import Floats

# A level is one of at least so many points: no outlier, and no pair of them, makes one.
FEWEST_POINTS = 3
# Candidates are cheap and tested afterwards, so the price of one is low, in squared standard errors.
PENALTY = 9.0
# Points on each side over which the local median is taken.
REACH = 3


def candidates(levels: Floats, variance: Floats) -> list[int]:
    """Return the first points of new levels by optimal partitioning (Jackson et al. 2005).

    Squared error in standard deviations, with a penalty for each change; outliers are bounded first about
    the local median, since squared error follows them (Fearnhead & Rigaill 2019).
    """
    n = len(levels)
    if n < 2 * FEWEST_POINTS:
        return []
    values = bounded_locally(levels, np.sqrt(variance))
    weights = 1 / variance
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (weights, weights * values)]
    best = np.full(n + 1, np.inf)
    best[0] = -PENALTY
    cut = np.zeros(n + 1, dtype=np.int64)
    for stop in range(FEWEST_POINTS, n + 1):
        begin = stop - FEWEST_POINTS + 1
        weight, product = (part[stop] - part[:begin] for part in sums)
        # The sum of squares is the same for all partitions; what a segment explains of it is subtracted.
        totals = best[:begin] - product**2 / weight + PENALTY
        cut[stop] = np.argmin(totals)
        best[stop] = totals[cut[stop]]
    places: list[int] = []
    stop = int(cut[n])
    while stop > 0:
        places.append(stop)
        stop = int(cut[stop])
    return places[::-1]


def bounded_locally(levels: Floats, deviation: Floats) -> Floats:
    """Return the values, none further than `BOUND` standard deviations from the median of its neighbours."""
    n = len(levels)
    first = np.clip(np.arange(n) - REACH, 0, max(n - 2 * REACH - 1, 0))
    windows = levels[np.minimum(first[:, None] + np.arange(min(2 * REACH + 1, n)), n - 1)]
    middle = np.median(windows, axis=1)
    return np.asarray(np.clip(levels, middle - BOUND * deviation, middle + BOUND * deviation))
