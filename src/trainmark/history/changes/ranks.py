"""The exact Mann–Whitney test where one sample is small, whatever the shape of the distribution."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.statistics.changes import midranks

# Beyond so many points on the shorter side the mean of the points is as good as normal.
MOST_SHORTER = 12
MOST_LONGER = 60


def rank_probability(before: Floats, after: Floats) -> float:
    """Return the two-sided probability of so uneven an order of exchangeable points.

    Counted out where one side is short, with at most the `MOST_LONGER` nearest points of the other; by the
    normal approximation where both are long.
    """
    if min(len(before), len(after)) <= MOST_SHORTER:
        before, after = before[-MOST_LONGER:], after[:MOST_LONGER]
    m, n = len(before), len(after)
    wins = float(np.sum(midranks(np.concatenate([before, after]))[m:])) - n * (n + 1) / 2
    fewer = min(wins, m * n - wins)
    if min(m, n) <= MOST_SHORTER:
        return min(1.0, 2 * float(_cumulative(min(m, n), max(m, n))[int(fewer)]))
    deviation = math.sqrt(m * n * (m + n + 1) / 12)
    return math.erfc(max(m * n / 2 - fewer - 0.5, 0.0) / deviation / math.sqrt(2))


def least_rank_probability(m: int, n: int) -> float:
    """Return that of two samples of these sizes which do not overlap."""
    return 2 / math.comb(m + n, m)


@lru_cache(maxsize=2048)
def _cumulative(m: int, n: int) -> Floats:
    """Return the distribution function of U, m ≤ n (Mann & Whitney 1947), by Gaussian binomials."""
    ways = np.zeros(m * n + 1)
    ways[0] = 1.0
    for i in range(1, m + 1):
        # ∏ (1 − q^(n+i)) ÷ (1 − q^i): first the factor above, then the one below.
        above = ways.copy()
        above[n + i :] -= ways[: len(ways) - n - i]
        for residue in range(i):
            above[residue::i] = np.cumsum(above[residue::i])
        ways = above
    return np.asarray(np.cumsum(ways) / math.comb(m + n, m))
