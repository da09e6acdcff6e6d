"""Where the level of a series may change: the partition of least penalised cost."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from trainmark.history.changes.noise import BOUND, bounded_mean_square
from trainmark.measure.statistics.arrays import Floats, Integers
from trainmark.measure.statistics.changes import midranks

# A level is one of at least so many points: no outlier, and no pair of them, makes one.
FEWEST_POINTS = 3
# Candidates are cheap and tested afterwards, so the price of one is low, in squared standard errors.
PENALTY = 9.0
# Points on each side over which the local median is taken.
REACH = 3


def candidates(levels: Floats, variance: Floats) -> list[int]:
    """Return the first points of new levels, by the values and by their ranks.

    Ranks see a shift of both modes of a bimodal machine, which is small beside the distance of the modes.
    """
    if len(levels) < 2 * FEWEST_POINTS:
        return []
    values = bounded_locally(levels, np.sqrt(variance))
    scores = normal_scores(levels)
    unit = np.full(len(levels), max(bounded_mean_square(np.diff(scores)) / 2, 1e-3))
    places, by_rank = partitions(np.stack([values, scores]), np.stack([variance, unit]))
    return sorted(places + [place for place in by_rank if _far(place, places)])


def partitions(values: Floats, variance: Floats) -> list[list[int]]:
    """Return for each row the first points of new levels by optimal partitioning (Jackson et al. 2005).

    The cost of a partition is the squared error in variances, and a penalty for each change.
    """
    rows, n = values.shape
    every = np.arange(rows)
    weights = 1 / variance
    products = weights * (values - np.median(values, axis=1, keepdims=True))
    weight, product = (
        np.concatenate([np.zeros((rows, 1)), np.cumsum(part, axis=1)], axis=1) for part in (weights, products)
    )
    best = np.full((rows, n + 1), np.inf)
    best[:, 0] = 0.0
    cut = np.zeros((rows, n + 1), dtype=np.int64)
    for stop in range(FEWEST_POINTS, n + 1):
        begin = stop - FEWEST_POINTS + 1
        # The sum of squares is the same for all partitions; what a segment explains of it is subtracted.
        explained = (product[:, stop, None] - product[:, :begin]) ** 2 / (
            weight[:, stop, None] - weight[:, :begin]
        )
        totals = best[:, :begin] - explained
        cut[:, stop] = totals.argmin(axis=1)
        best[:, stop] = totals[every, cut[:, stop]] + PENALTY
    return [_backwards(row) for row in cut]


def _backwards(cut: Integers) -> list[int]:
    places: list[int] = []
    stop = int(cut[-1])
    while stop > 0:
        places.append(stop)
        stop = int(cut[stop])
    return places[::-1]


def best_place(levels: Floats) -> int:
    """Return the one cut that sets two distributions apart most, by their energy distance.

    It knows a shift of both modes of a bimodal machine by more than the mean (Matteson & James 2014).
    """
    n = len(levels)
    sums = np.abs(np.subtract.outer(levels, levels)).cumsum(axis=0).cumsum(axis=1)
    left = np.arange(FEWEST_POINTS, n - FEWEST_POINTS + 1)
    right, last = n - left, left - 1
    within_left, both = sums[last, last], sums[last, -1]
    across, within_right = both - within_left, sums[-1, -1] - 2 * both + within_left
    # Means over distinct pairs: those of a value with itself would favour cuts near an end.
    distance = (
        2 * across / (left * right) - within_left / (left * (left - 1)) - within_right / (right * (right - 1))
    )
    return int(np.argmax(distance * left * right)) + FEWEST_POINTS


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks (van der Waerden 1952)."""
    ranks = midranks(values)
    return _normal_quantiles(2 * len(values))[np.rint(2 * ranks).astype(np.int64) - 1]


@lru_cache(maxsize=2048)
def _normal_quantiles(halves: int) -> Floats:
    """Return the quantile at each half rank."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(half / (halves + 2)) for half in range(1, halves + 2)])


def _far(place: int, others: list[int]) -> bool:
    return all(abs(place - other) >= FEWEST_POINTS for other in others)


def bounded_locally(levels: Floats, deviation: Floats) -> Floats:
    """Return the values, none further than `BOUND` standard deviations from the median of its neighbours."""
    n = len(levels)
    first = np.clip(np.arange(n) - REACH, 0, max(n - 2 * REACH - 1, 0))
    windows = levels[np.minimum(first[:, None] + np.arange(min(2 * REACH + 1, n)), n - 1)]
    middle = np.median(windows, axis=1)
    return np.asarray(np.clip(levels, middle - BOUND * deviation, middle + BOUND * deviation))
