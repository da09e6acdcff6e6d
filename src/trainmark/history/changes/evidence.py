"""What speaks for a change of level between two stretches of points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trainmark.history.changes.noise import BOUND, Noise
from trainmark.history.changes.ranks import least_rank_probability, rank_probability
from trainmark.history.changes.student import two_sided
from trainmark.measure.statistics.arrays import Floats

# The most that either test may leave to chance at one place; calibrated for looks after every point.
SIGNIFICANCE = 2e-5
RANK_SIGNIFICANCE = 5e-4
# Where even two samples that do not overlap leave more than this to chance, there are too few points.
MOST_LEAST = 0.01


@dataclass(frozen=True)
class Evidence:
    """`shift` of the log level with its standard `error`; `chance` by Student's t and by ranks."""

    shift: float
    error: float
    freedom: float
    chance: float
    rank_chance: float
    least_rank_chance: float

    @property
    def certain(self) -> bool:
        return (
            self.chance <= SIGNIFICANCE
            and self.least_rank_chance <= MOST_LEAST
            and self.rank_chance <= max(RANK_SIGNIFICANCE, self.least_rank_chance)
        )


def evidence(
    levels: Floats, noise: Noise, inflation: float, freedom: float, place: tuple[int, int, int]
) -> Evidence:
    """Compare the points from the first of `place` to the second with those from there to the third."""
    first, cut, stop = place
    before, after = slice(first, cut), slice(cut, stop)
    contrast = np.concatenate([-_weights(noise.total[before]), _weights(noise.total[after])])
    values = np.concatenate(
        [bounded(levels[part], noise.total[part] * inflation) for part in (before, after)]
    )
    by_point = float(contrast**2 @ noise.variance[first:stop])
    by_day = noise.day_variance * float(np.sum(np.bincount(noise.day[first:stop], contrast) ** 2))
    error = math.sqrt((by_point + by_day) * inflation)
    shift = float(contrast @ values)
    days = max(int(noise.day[-1]) - 1, 1)
    # Satterthwaite (1946): two estimated variances of different certainty.
    freedom = (by_point + by_day) ** 2 / (by_point**2 / freedom + by_day**2 / days)
    m, n = cut - first, stop - cut
    return Evidence(
        shift,
        error,
        freedom,
        two_sided(shift / error, freedom),
        rank_probability(levels[before], levels[after]),
        least_rank_probability(m, n),
    )


def inflation_of(levels: Floats, noise: Noise, cuts: list[int]) -> float:
    """Return the variance about the levels in the variances expected, where it is the larger."""
    parts = [slice(first, stop) for first, stop in zip([0, *cuts], [*cuts, len(levels)], strict=True)]
    squares = sum(
        float(np.sum(np.minimum((levels[part] - np.median(levels[part])) ** 2 / noise.total[part], BOUND**2)))
        for part in parts
    )
    return max(1.0, squares / max(len(levels) - len(parts), 1))


def bounded(values: Floats, variance: Floats) -> Floats:
    """Return the values, none further than `BOUND` standard deviations from their median."""
    middle, reach = np.median(values), BOUND * np.sqrt(variance)
    return np.asarray(np.clip(values, middle - reach, middle + reach))


def _weights(variance: Floats) -> Floats:
    weights = 1 / variance
    return np.asarray(weights / weights.sum())
