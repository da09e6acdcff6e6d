"""How long the slowest of many takes."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

SAMPLED_STEPS = 200


@cache
def expected_largest(count: int) -> float:
    """The mean of the largest of `count` standard normal values: 0, 0.56, …, 1.03 for four, 3.04 for 512.

    ∫ 1 − Φ(x)ⁿ over the positive half-line minus ∫ Φ(x)ⁿ over the negative one, by midpoints.
    """
    x = (np.arange(20_000) + 0.5) / 1000 - 10
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x]) ** count
    return float(np.sum(np.where(x >= 0, 1 - below, -below)) * (x[1] - x[0]))


@cache
def slowest_rank(ranks: int, variation: float, seed: int = 0) -> float:
    """A step's computation on the slowest rank over that of a usual one, when ranks vary lognormally.

    `variation` is the coefficient of variation of one rank's computation; the mean of sampled steps.
    """
    if ranks == 1 or variation == 0:
        return 1.0
    sigma = math.sqrt(math.log1p(variation**2))
    noise = np.random.default_rng(seed).normal(-sigma * sigma / 2, sigma, (SAMPLED_STEPS, ranks))
    return float(np.exp(noise.max(axis=1)).mean())
