"""Slow drifts: stretches between changes whose level moves steadily, along a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trainmark.history.changes.evidence import CONFIDENCE, explained, inflation
from trainmark.history.changes.model import Change, Drift
from trainmark.history.changes.noise import Noise, design_of, noise_of
from trainmark.history.changes.segments import FEWEST_POINTS, bounded_locally
from trainmark.history.changes.student import quantile, two_sided
from trainmark.history.series import Point
from trainmark.measure.statistics.arrays import Floats

# A line through fewer points is hardly told from a step.
FEWEST_DRIFTING = 20
# The most that the test of a slope may leave to chance. It has no place to choose, unlike that of a step.
SIGNIFICANCE = 1e-4


def drifts(points: Sequence[Point], changes: Sequence[Change]) -> tuple[Drift, ...]:
    """Return the stretches between the changes of these points along which the level certainly drifts."""
    if len(points) < FEWEST_DRIFTING:
        return ()
    levels = np.array([math.log(point.median) for point in points])
    cuts = [change.index for change in changes]
    noise = noise_of(design_of(points), levels, cuts)
    stretches = pairwise([0, *cuts, len(levels)])
    tested = (_drift(levels, noise, first, stop) for first, stop in stretches)
    return tuple(drift for drift in tested if drift is not None)


def _drift(levels: Floats, noise: Noise, first: int, stop: int) -> Drift | None:
    """Return the drift of one stretch; None where the slope is not certain, or a step explains as much."""
    n, own = stop - first, slice(first, stop)
    if n < FEWEST_DRIFTING:
        return None
    values, weights = bounded_locally(levels[own], np.sqrt(noise.total[own])), 1 / noise.total[own]
    at = np.arange(n, dtype=np.float64)
    centred = at - weights @ at / weights.sum()
    contrast = weights * centred / float(weights @ centred**2)
    slope = float(contrast @ values)
    residuals = values - slope * centred
    residuals -= weights @ residuals / weights.sum()
    by_point = float(contrast**2 @ noise.variance[own])
    by_day = noise.day_variance * float(np.sum(np.bincount(noise.day[own], contrast) ** 2))
    error = math.sqrt((by_point + by_day) * inflation(float(weights @ residuals**2) / (n - 2), n))
    days = max(int(noise.day[stop - 1] - noise.day[first]) - 1, 1)
    freedom = (by_point + by_day) ** 2 / (by_point**2 / (n - 2) + by_day**2 / days)
    chance = two_sided(slope / error, freedom)
    if chance > SIGNIFICANCE or explained(values, weights, at) < _by_best_step(values, weights):
        return None
    reach = quantile(CONFIDENCE, freedom) * error
    ratio, low, high = (math.exp((slope + more) * (n - 1)) for more in (0.0, -reach, reach))
    return Drift(first, stop - 1, ratio, low, high, chance)


def _by_best_step(values: Floats, weights: Floats) -> float:
    """Return by how much the best single step lowers the weighted sum of squares."""
    products = weights * (values - weights @ values / weights.sum())
    left, total = np.cumsum(weights)[:-1], weights.sum()
    by_cut = np.cumsum(products)[:-1] ** 2 * total / (left * (total - left))
    return float(by_cut[FEWEST_POINTS - 1 : len(by_cut) - FEWEST_POINTS + 1].max())
