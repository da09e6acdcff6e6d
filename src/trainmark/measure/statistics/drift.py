"""Drift: step times that keep changing instead of coming to rest."""

from __future__ import annotations

import math

import numpy as np

from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.statistics.changes import RELEVANT_CHANGE, batch_medians, independent_share

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


def drifts(seconds: Floats) -> bool:
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
