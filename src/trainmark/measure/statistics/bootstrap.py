"""How far one trial's rate could have come out differently, its steps depending on each other."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from trainmark.measure.figure import Interval
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.statistics.intervals import CONFIDENCE

# With rare stalls in them, fewer steps cover far less than the interval would claim (30 steps: 78 %).
FEWEST_STEPS = 100

# Longer windows are summed over consecutive steps first: the rate does not need more to vary by.
MOST_BATCHES = 2_000

RESAMPLES = 1_000

# Fixed, so that the same events always give the same figure.
SEED = 2017


def rate_interval(step_seconds: Floats, samples: Floats, confidence: float = CONFIDENCE) -> Interval | None:
    """Interval for samples ÷ time of one trial by the circular block bootstrap; None for too few steps.

    Whole blocks of consecutive steps are drawn (Politis & Romano 1992), so that what a slow step does to
    its neighbours stays in. The quantiles are widened as far as Student's exceed the normal's at the
    number of blocks, without which a percentile interval is too narrow (Hesterberg 2015).
    """
    size = -(-len(step_seconds) // MOST_BATCHES)
    seconds, counts = _batched(step_seconds, size), _batched(samples, size)
    n = len(seconds)
    if n < FEWEST_STEPS or seconds.sum() <= 0:
        return None
    rate = float(counts.sum() / seconds.sum())
    block = block_length(counts - rate * seconds)
    blocks = -(-n // block)
    starts = np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, blocks))
    resampled = _block_sums(counts, block)[starts].sum(axis=1) / _block_sums(seconds, block)[starts].sum(
        axis=1
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    widening = math.sqrt(n / (n - block)) * _student_over_normal(confidence, n / block - 1)
    return Interval(rate - (rate - float(low)) * widening, rate + (float(high) - rate) * widening, confidence)


def _student_over_normal(confidence: float, freedom: float) -> float:
    """Student's quantile over the normal one, by its expansion in 1/freedom (Peiser 1943)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return 1 + (z * z + 1) / (4 * freedom)


def block_length(residuals: Floats) -> int:
    """The length that suits the autocorrelation (Politis & White 2004, corrected by Patton et al. 2009)."""
    n = len(residuals)
    longest = max(1, min(n // 4, math.ceil(3 * math.sqrt(n))))
    covariances = _autocovariances(residuals, longest)
    if covariances[0] <= 0:
        return 1
    negligible = 2 * math.sqrt(math.log10(n) / n)
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(n))))
    small = np.abs(covariances[1:] / covariances[0]) < negligible
    last = next((lag for lag in range(longest) if small[lag : lag + in_a_row].all()), longest)
    lags = np.arange(1, min(2 * max(last, 1), longest) + 1)
    weights = np.clip(2 * (1 - lags / (2 * max(last, 1))), 0, 1)
    curvature = 2 * float(np.sum(weights * lags * covariances[lags]))
    long_run = float(covariances[0] + 2 * np.sum(weights * covariances[lags]))
    if long_run <= 0:
        return 1
    length = math.pow(1.5 * (curvature / long_run) ** 2 * n, 1 / 3)
    return min(max(1, math.ceil(length)), longest)


def _batched(values: Floats, size: int) -> Floats:
    """Sums over consecutive steps; what does not fill the last batch is left out."""
    whole = len(values) // size if size else 0
    return (
        np.asarray(values[: whole * size].reshape(whole, -1).sum(axis=1), dtype=np.float64)
        if whole
        else values
    )


def _block_sums(values: Floats, block: int) -> Floats:
    """Sums of the `block` values from each position on, round the end."""
    total = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(total[block:] - total[:-block], dtype=np.float64)


def _autocovariances(residuals: Floats, longest: int) -> Floats:
    n = len(residuals)
    centred = residuals - residuals.mean()
    return np.array([float(centred[lag:] @ centred[: n - lag]) / n for lag in range(longest + 1)])
