"""Intervals that assume no shape of distribution, each with the confidence that it truly carries."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from trainmark.measure.figure import Interval
from trainmark.measure.statistics.mann_whitney import rank_and_confidence

CONFIDENCE = 0.95

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


def _thinned(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    ordered = np.array(values, dtype=np.float64)
    if len(ordered) <= MOST_PAIRED:
        return ordered
    ordered.sort()
    centres = (np.arange(MOST_PAIRED) + 0.5) * len(ordered) / MOST_PAIRED
    return ordered[centres.astype(np.int64)]
