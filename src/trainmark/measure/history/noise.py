"""How far a point may lie from its level, and where the level of a series may change.

A random-effects model: a point's log throughput is level + day + point + trials, each with a variance of its
own. The variances come from successive differences, which a change of level touches at one place only
(von Neumann 1941), and from bounded ones, which an outlier cannot inflate. In a short history that one place
counts: a step of 4 standard deviations among 17 points makes the variance half as large again, and hides
itself. So the variance of points is estimated anew about the levels once places of changes are proposed.

Places are proposed by the partition of least penalised cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import NORMAL_MEDIAN, Floats, Integers, midranks

SECONDS_A_DAY = 86_400
# Quantiles of the absolute normal deviation. The higher one sees the second mode of a bimodal machine.
MEDIAN_QUANTILE = 0.5
HIGH, HIGH_QUANTILE = 1.4395, 0.85
# In standard deviations: what lies further out counts as if it lay here (Huber 1964).
BOUND = 3.0
# Days are an effect of their own where so many successive points share one.
FEWEST_WITHIN_DAYS = 8
# The variance of the median of so many normal values, in variances of one (Teichroew 1956).
MEDIAN_VARIANCE = (1.0, 1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147)


@dataclass(frozen=True)
class HistoryNoise:
    """`variance` of each point about its day, `day` the number of that, `day_variance` of days."""

    variance: Floats
    day: Integers
    day_variance: float

    @property
    def total(self) -> Floats:
        return self.variance + self.day_variance


@dataclass(frozen=True)
class NoiseDesign:
    """What of the noise does not depend on levels: days, trials of each point, variance of one trial.

    `shares` are the variances of the medians of so many trials as each point has, in variances of one.
    """

    day: Integers
    shares: Floats
    trial_variance: float


def design_of(points: Sequence[RunPoint]) -> NoiseDesign:
    days = [int(point.time // SECONDS_A_DAY) for point in points]
    return NoiseDesign(
        np.unique(days, return_inverse=True)[1].reshape(-1),
        np.array([median_variance(len(point.values)) for point in points]),
        _trial_variance(points),
    )


def noise_of(design: NoiseDesign, levels: Floats, cuts: Sequence[int] = ()) -> HistoryNoise:
    """Estimate the variances from log throughputs whose level changes at the cuts."""
    day, shares, within = design.day, design.shares, design.trial_variance
    residuals = np.concatenate([part - np.median(part) for part in np.split(levels, cuts)])
    steps, same_day = np.diff(residuals), np.diff(day) == 0
    by_day = bool(same_day.sum() >= FEWEST_WITHIN_DAYS and not same_day.all())
    between = bounded_mean_square(steps[same_day] if by_day else steps) / 2
    variance = max(between - within * float(shares.mean()), 0.0) + within * shares
    # Values that repeat to the last digit have no noise to compare with; a millionth stands in for it.
    variance = np.maximum(variance, 1e-12)
    # The days are few: without the differences at the cuts, each day of its own level, they would seem equal.
    return HistoryNoise(variance, day, _day_variance(levels, variance, day) if by_day else 0.0)


def median_variance(n: int) -> float:
    """Return the variance of the median of n normal values, in variances of one."""
    return MEDIAN_VARIANCE[n] if n < len(MEDIAN_VARIANCE) else math.pi / 2 / (n + math.pi / 2 - 1)


def bounded_mean_square(values: Floats) -> float:
    """Return the mean square, values beyond `BOUND` robust standard deviations taken as there."""
    if not len(values):
        return 0.0
    sizes = np.abs(values)
    median, high = np.quantile(sizes, (MEDIAN_QUANTILE, HIGH_QUANTILE))
    scale = max(float(median) / NORMAL_MEDIAN, float(high) / HIGH)
    return float(np.mean(np.minimum(sizes, BOUND * scale) ** 2))


def _trial_variance(points: Sequence[RunPoint]) -> float:
    """Return the variance of one trial about its point, pooled over the points that have several."""
    steps = np.diff(np.log([value for point in points for value in point.values]))
    last = np.cumsum([len(point.values) for point in points])[:-1] - 1
    return bounded_mean_square(np.delete(steps, last)) / 2


def _day_variance(levels: Floats, variance: Floats, day: Integers) -> float:
    """Return what the means of days differ by beyond what their points explain."""
    counts = np.bincount(day)
    means = np.bincount(day, levels) / counts
    explained = np.bincount(day, variance) / counts**2
    return max(bounded_mean_square(np.diff(means)) / 2 - float(explained.mean()), 0.0)


# A level is one of at least so many points: no outlier, and no pair of them, makes one.
FEWEST_POINTS = 3
# Candidates are cheap and tested afterwards, so the price of one is low, in squared standard errors.
CUT_PENALTY = 9.0
# Points on each side over which the local median is taken.
REACH = 3


def candidate_cuts(levels: Floats, variance: Floats) -> list[int]:
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
        best[:, stop] = totals[every, cut[:, stop]] + CUT_PENALTY
    return [_backwards(row) for row in cut]


def _backwards(cut: Integers) -> list[int]:
    places: list[int] = []
    stop = int(cut[-1])
    while stop > 0:
        places.append(stop)
        stop = int(cut[stop])
    return places[::-1]


def best_cut(levels: Floats) -> int:
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
