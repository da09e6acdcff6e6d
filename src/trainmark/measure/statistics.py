"""Intervals that assume no shape of distribution, each with the confidence that it truly carries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from trainmark.measure.figure import ONE, Interval, Ratio

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CONFIDENCE = 0.95
# Of the absolute deviation of a normal value from its mean, in standard deviations.
NORMAL_MEDIAN = 0.6745


def median_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def median_count(values: Iterable[int | None]) -> int | None:
    """Return a count that one of them has: the lower one of two in the middle."""
    known = [value for value in values if value is not None]
    return statistics.median_low(known) if known else None


def relative_spread(values: Sequence[float]) -> float:
    """Return the interquartile range over the median."""
    if len(values) < 2:
        return 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median


def midranks(values: Floats) -> Floats:
    """Return ranks from 1, ties sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse.reshape(-1)], dtype=np.float64)


# Up to here the distribution is counted out; beyond, the normal approximation errs in the fifth digit.
LARGEST_EXACT = 30


@lru_cache(maxsize=1024)
def rank_and_confidence(m: int, n: int, confidence: float) -> tuple[int, float]:
    """The k for which the k-th smallest and k-th largest of the m·n pairs bound the shift, and how surely.

    That is 1 − 2·P(U < k) (Moses 1953; Hollander, Wolfe & Chicken 2014, §4.3). Where even the extreme
    pairs do not reach `confidence`, k is 1 and the confidence what they do reach.
    """
    if max(m, n) > LARGEST_EXACT:
        sigma = math.sqrt(m * n * (m + n + 1) / 12)
        k = int(m * n / 2 + 0.5 + NormalDist().inv_cdf((1 - confidence) / 2) * sigma)
        if k >= 1:
            return k, 1 - 2 * NormalDist(m * n / 2, sigma).cdf(k - 0.5)
        return 1, 1 - 2 / math.comb(m + n, m)
    ways = orders_by_u(m, n).tolist()
    total = math.comb(m + n, m)
    k, below = 1, ways[0]
    while k < len(ways) and (total - 2 * (below + ways[k])) / total >= confidence:
        below += ways[k]
        k += 1
    return k, 1 - 2 * below / total


def orders_by_u(m: int, n: int) -> Integers:
    """Return in how many orders of m + n values each Mann–Whitney U arises: Gaussian binomial coefficients.

    Their integers hold sizes up to 30 each, and 12 of one beside 100 of the other.
    """
    ways = np.zeros(m * n + 1, dtype=np.int64)
    ways[0] = 1
    for i in range(1, m + 1):
        # ∏ (1 − q^(n+i)) ÷ (1 − q^i): first the factor above, then the one below.
        above = ways.copy()
        above[n + i :] -= ways[: len(ways) - n - i]
        for residue in range(i):
            above[residue::i] = np.cumsum(above[residue::i])
        ways = above
    return ways


# A quotient of two samples of this size already has 250,000 pairs; larger ones are thinned to as many
# evenly spaced order statistics, which moves a bound by far less than its own uncertainty.
MOST_PAIRED = 500


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Interval for the median from order statistics; below six values their range, and what that carries.

    The k-th smallest and k-th largest cover the median with probability 1 − 2·P(Binomial(n, ½) < k)
    (Conover 1999, §3.2). The interpolation of Hettmansperger & Sheather (1986) is narrower but covers as
    little as 88 % where trials fall in two modes, which they do; so the bounds are whole order statistics.
    """
    n = len(values)
    if n < 2:
        return None
    k, carried = _median_rank(n, confidence)
    ordered = sorted(values)
    return Interval(ordered[k - 1], ordered[n - k], carried)


def ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Interval for the quotient of two samples of positive values; None for one value on each side.

    Order statistics of all pairwise log quotients, by inversion of the Mann–Whitney test (Moses 1953;
    Hodges & Lehmann 1963). It centres on the Hodges–Lehmann estimate, so it is widened where needed to
    hold the quotient of the medians, which is the value reported.
    """
    m, n = len(numerator), len(denominator)
    if min(m, n) < 1 or m + n < 3:
        return None
    k, carried = rank_and_confidence(m, n, confidence)
    above, below = _thinned(numerator), _thinned(denominator)
    quotients = np.sort(np.divide.outer(above, below).ravel())
    if quotients.size < m * n:
        k = max(1, int(k / (m * n) * quotients.size))
    value = statistics.median(numerator) / statistics.median(denominator)
    return Interval(min(float(quotients[k - 1]), value), max(float(quotients[-k]), value), carried)


def median_ratio(numerator: Sequence[float], denominator: Sequence[float]) -> Ratio:
    """Return the quotient of the medians; exactly 1 of a sample and itself."""
    if numerator is denominator:
        return ONE
    value = statistics.median(numerator) / statistics.median(denominator)
    return Ratio(value, ratio_interval(numerator, denominator))


@lru_cache(maxsize=1024)
def _median_rank(n: int, confidence: float) -> tuple[int, float]:
    """The largest k whose order statistics reach `confidence`, or 1, and the confidence of that k."""
    # Whole numbers throughout: 2.0**n overflows where n passes a thousand.
    total = 2**n
    k, below = 1, 1
    ways = n
    while k < n // 2 and (total - 2 * (below + ways)) / total >= confidence:
        below += ways
        ways = ways * (n - k) // (k + 1)
        k += 1
    return k, 1 - 2 * below / total


def _thinned(values: Sequence[float]) -> Floats:
    ordered = np.array(values, dtype=np.float64)
    if len(ordered) <= MOST_PAIRED:
        return ordered
    ordered.sort()
    centres = (np.arange(MOST_PAIRED) + 0.5) * len(ordered) / MOST_PAIRED
    return ordered[centres.astype(np.int64)]


# With rare stalls in them, fewer steps cover far less than the interval would claim (30 steps: 78 %).
FEWEST_STEPS = 100

# Longer windows are summed over consecutive steps first: the rate does not need more to vary by.
MOST_BOOTSTRAP_BATCHES = 2_000

RESAMPLES = 1_000

# Fixed, so that the same events always give the same figure.
BOOTSTRAP_SEED = 2017


def rate_interval(step_seconds: Floats, samples: Floats, confidence: float = CONFIDENCE) -> Interval | None:
    """Interval for samples ÷ time of one trial by the circular block bootstrap; None for too few steps.

    Whole blocks of consecutive steps are drawn (Politis & Romano 1992), so that what a slow step does to
    its neighbours stays in. The quantiles are widened as far as Student's exceed the normal's at the
    number of blocks, without which a percentile interval is too narrow (Hesterberg 2015).
    """
    size = -(-len(step_seconds) // MOST_BOOTSTRAP_BATCHES) or 1
    seconds, counts = _batched(step_seconds, size), _batched(samples, size)
    n = len(seconds)
    if n < FEWEST_STEPS or seconds.sum() <= 0:
        return None
    rate = float(counts.sum() / seconds.sum())
    block = block_length(counts - rate * seconds)
    blocks = -(-n // block)
    starts = np.random.default_rng(BOOTSTRAP_SEED).integers(0, n, size=(RESAMPLES, blocks))
    resampled = _block_sums(counts, block)[starts].sum(axis=1) / _block_sums(seconds, block)[starts].sum(
        axis=1
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    widening = math.sqrt(n / (n - block)) * student_over_normal(confidence, n / block - 1)
    return Interval(rate - (rate - float(low)) * widening, rate + (float(high) - rate) * widening, confidence)


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
    whole = len(values) // size
    return np.asarray(values[: whole * size].reshape(whole, size).sum(axis=1), dtype=np.float64)


def _block_sums(values: Floats, block: int) -> Floats:
    """Sums of the `block` values from each position on, round the end."""
    total = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(total[block:] - total[:-block], dtype=np.float64)


def _autocovariances(residuals: Floats, longest: int) -> Floats:
    n = len(residuals)
    centred = residuals - residuals.mean()
    return np.array([float(centred[lag:] @ centred[: n - lag]) / n for lag in range(longest + 1)])


# Student's t three times, each as exact as its place needs: to a percent where a bootstrap is widened, to a
# thousandth for a limit, and to three digits as a test.


def student_over_normal(confidence: float, freedom: float) -> float:
    """Return Student's quantile over the normal one, by its expansion in 1/freedom (Peiser 1943)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return 1 + (z * z + 1) / (4 * freedom)


def student_deviate(z: float, freedom: float) -> float:
    """Return the quantile of Student's t that `z` is of the normal distribution (Cornish & Fisher 1938)."""
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def student_two_sided(t: float, freedom: float) -> float:
    """Return P(|T| > |t|), by Wallace's transformation to a normal deviate (1959)."""
    root = math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.erfc((8 * freedom + 1) / (8 * freedom + 3) * root / math.sqrt(2))


def student_quantile(confidence: float, freedom: float) -> float:
    """Return the t that |T| exceeds with probability 1 − confidence, by that transformation."""
    z = NormalDist().inv_cdf((1 + confidence) / 2) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(z * z / freedom))
