"""Evidence that differences lie above zero, which may be looked at after every one of them: an e-process.

The two sides of a pair run under the same conditions in random order, so that under the null hypothesis a
difference is as likely +x as −x, whatever the noise: heavy tails, outliers and two modes included. Betting
the share g of the capital on each sign multiplies it by 1 + g or 1 − g, with expectation 1; the capital
exceeds 1/α at any time with probability at most α (Ville 1939), however often one looks. Tests of symmetry by
such bets: Vovk & Wang, «Nonparametric e-tests of symmetry» (2024); inference at any time by betting: Ramdas,
Grünwald, Vovk & Shafer, «Game-theoretic statistics and safe anytime-valid inference» (2023).

The bet is an odd, increasing function of the difference over the median size of the earlier ones. Increasing
makes it valid for every distribution that is symmetric about a value ≤ 0, not about 0 alone. The e-process of
a t-test (Lai 1976; Wang & Ramdas 2024) is proven for normal noise only; it decides a clear case a pair sooner,
but where one trial in twenty is an outlier it takes three times as many pairs (benchmarks/sequential.py).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Strategy:
    """A way to bet: its share of the capital, how steeply bets grow with size, the largest bet, the first."""

    share: float
    steepness: float
    most: float
    first: float


# Nobody knows beforehand how large the difference is beside the noise; the first is for far above it, the
# last for far below.
STRATEGIES = (
    Strategy(0.75, 3.0, 0.95, 0.9),
    Strategy(0.15, 0.6, 0.8, 0.5),
    Strategy(0.10, 0.25, 0.6, 0.2),
)


def evidence_above_zero(differences: Sequence[float]) -> list[float]:
    """Return the capital after each difference: an e-process against «symmetric about a value ≤ 0»."""
    capital = [strategy.share for strategy in STRATEGIES]
    sizes: list[float] = []
    totals = []
    for difference in differences:
        for index, strategy in enumerate(STRATEGIES):
            capital[index] *= 1 + _bet(strategy, difference, sizes)
        insort(sizes, abs(difference))
        totals.append(sum(capital))
    return totals


def first_at_least(evidence: Sequence[float], threshold: float) -> int | None:
    """Return the number of differences after which the evidence first reached the threshold, if ever."""
    return next((count for count, total in enumerate(evidence, 1) if total >= threshold), None)


def _bet(strategy: Strategy, difference: float, sizes: Sequence[float]) -> float:
    scale = _median(sizes)
    if scale > 0:
        return strategy.most * math.tanh(strategy.steepness * difference / scale)
    # No size is known yet, or more than half were ties: the sign alone.
    return math.copysign(strategy.first, difference) if difference else 0.0


def _median(ordered: Sequence[float]) -> float:
    if not ordered:
        return 0.0
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
