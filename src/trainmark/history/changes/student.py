"""Student's t without a library: tails and quantiles to three digits."""

from __future__ import annotations

import math
from statistics import NormalDist


def two_sided(t: float, freedom: float) -> float:
    """Return P(|T| > |t|), by Wallace's transformation to a normal deviate (1959)."""
    root = math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.erfc((8 * freedom + 1) / (8 * freedom + 3) * root / math.sqrt(2))


def quantile(confidence: float, freedom: float) -> float:
    """Return the t that |T| exceeds with probability 1 − confidence, by that transformation."""
    z = NormalDist().inv_cdf((1 + confidence) / 2) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(z * z / freedom))


def weakened(probability: float, factor: float) -> float:
    """Return the probability of a normal deviate whose variance was `factor` times what was thought."""
    if factor <= 1 or probability <= 0:
        return probability
    z = -NormalDist().inv_cdf(max(probability, 1e-300) / 2)
    return math.erfc(z / math.sqrt(2 * factor))
