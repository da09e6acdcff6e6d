"""How far a point may lie from its level: by its trials, by the point, by the day.

A random-effects model: a point's log throughput is level + day + point + trials, each with a variance of its
own. The variances come from successive differences, which a change of level touches at one place only
(von Neumann 1941), and from bounded ones, which an outlier cannot inflate. In a short history that one place
counts: a step of 4 standard deviations among 17 points makes the variance half as large again, and hides
itself. So the variance of points is estimated anew about the levels once places of changes are proposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainmark.history.series import Point
from trainmark.measure.statistics.arrays import Floats, Integers

SECONDS_A_DAY = 86_400
# Quantiles of the absolute normal deviation. The higher one sees the second mode of a bimodal machine.
MEDIAN, MEDIAN_QUANTILE = 0.6745, 0.5
HIGH, HIGH_QUANTILE = 1.4395, 0.85
# In standard deviations: what lies further out counts as if it lay here (Huber 1964).
BOUND = 3.0
# Days are an effect of their own where so many successive points share one.
FEWEST_WITHIN_DAYS = 8
# The variance of the median of so many normal values, in variances of one (Teichroew 1956).
MEDIAN_VARIANCE = (1.0, 1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147)


@dataclass(frozen=True)
class Noise:
    """`variance` of each point about its day, `day` the number of that, `day_variance` of days."""

    variance: Floats
    day: Integers
    day_variance: float

    @property
    def total(self) -> Floats:
        return self.variance + self.day_variance


@dataclass(frozen=True)
class Design:
    """What of the noise does not depend on levels: days, trials of each point, variance of one trial.

    `shares` are the variances of the medians of so many trials as each point has, in variances of one.
    """

    day: Integers
    shares: Floats
    trial_variance: float


def design_of(points: Sequence[Point]) -> Design:
    days = [int(point.time // SECONDS_A_DAY) for point in points]
    return Design(
        np.unique(days, return_inverse=True)[1].reshape(-1),
        np.array([median_variance(len(point.values)) for point in points]),
        _trial_variance(points),
    )


def noise_of(design: Design, levels: Floats, cuts: Sequence[int] = ()) -> Noise:
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
    return Noise(variance, day, _day_variance(levels, variance, day) if by_day else 0.0)


def median_variance(n: int) -> float:
    """Return the variance of the median of n normal values, in variances of one."""
    return MEDIAN_VARIANCE[n] if n < len(MEDIAN_VARIANCE) else math.pi / 2 / (n + math.pi / 2 - 1)


def bounded_mean_square(values: Floats) -> float:
    """Return the mean square, values beyond `BOUND` robust standard deviations taken as there."""
    if not len(values):
        return 0.0
    sizes = np.abs(values)
    median, high = np.quantile(sizes, (MEDIAN_QUANTILE, HIGH_QUANTILE))
    scale = max(float(median) / MEDIAN, float(high) / HIGH)
    return float(np.mean(np.minimum(sizes, BOUND * scale) ** 2))


def _trial_variance(points: Sequence[Point]) -> float:
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
