"""The null distribution of the Mann–Whitney statistic, for exact two-sample intervals."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

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
    ways = _ways(m, n)
    total = math.comb(m + n, m)
    k, below = 1, ways[0]
    while k < len(ways) and (total - 2 * (below + ways[k])) / total >= confidence:
        below += ways[k]
        k += 1
    return k, 1 - 2 * below / total


def _ways(m: int, n: int) -> list[int]:
    """In how many orders of m + n values each U arises: the Gaussian binomial coefficient of m + n over m."""
    size = m * n + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, m + 1):
        for u in range(size - 1, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, size):
            ways[u] += ways[u - i]
    return ways
