"""A/B comparison by interleaved pairs of trials, looked at after each pair: slower, faster, or the same.

The evidence that differences lie above zero is an e-process, which may be looked at after each of them.
The two sides of a pair run under the same conditions in random order, so that under the null hypothesis a
difference is as likely +x as −x, whatever the noise: heavy tails, outliers and two modes included. Betting
the share g of the capital on each sign multiplies it by 1 + g or 1 − g, with expectation 1; the capital
exceeds 1/α at any time with probability at most α (Ville 1939), however often one looks. Tests of symmetry
by such bets: Vovk & Wang, «Nonparametric e-tests of symmetry» (2024); inference at any time by betting:
Ramdas, Grünwald, Vovk & Shafer, «Game-theoretic statistics and safe anytime-valid inference» (2023).

The bet is an odd, increasing function of the difference over the median size of the earlier ones. Increasing
makes it valid for every distribution that is symmetric about a value ≤ 0, not about 0 alone. The e-process
of a t-test (Lai 1976; Wang & Ramdas 2024) is proven for normal noise only; it decides clear cases a pair
sooner, but at 1 % noise and one outlier in twenty trials takes four times as many pairs
(benchmarks/sequential.py).
"""

from __future__ import annotations

import math
import random
import statistics
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


def b_first(seed: int, index: int) -> bool:
    """Draw whether B runs first in pair number `index`; the same again after an interruption.

    In a fixed order a drift of the machine, shared by both sides, would favour the side that comes first.
    """
    return random.Random(f"pair {seed} {index}").random() < 0.5


@dataclass(frozen=True)
class BettingStrategy:
    """A way to bet: its share of the capital, how steeply bets grow with size, the largest bet, the first."""

    share: float
    steepness: float
    most: float
    first: float


# Nobody knows beforehand how large the difference is beside the noise; the first is for far above it, the
# last for far below.
BETTING_STRATEGIES = (
    BettingStrategy(0.75, 3.0, 0.95, 0.9),
    BettingStrategy(0.15, 0.6, 0.8, 0.5),
    BettingStrategy(0.10, 0.25, 0.6, 0.2),
)


def evidence_above_zero(differences: Sequence[float]) -> list[float]:
    """Return the capital after each difference: an e-process against «symmetric about a value ≤ 0»."""
    capital = [strategy.share for strategy in BETTING_STRATEGIES]
    sizes: list[float] = []
    totals = []
    for difference in differences:
        for index, strategy in enumerate(BETTING_STRATEGIES):
            capital[index] *= 1 + _bet(strategy, difference, sizes)
        insort(sizes, abs(difference))
        totals.append(sum(capital))
    return totals


def _bet(strategy: BettingStrategy, difference: float, sizes: Sequence[float]) -> float:
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


Pairs = Sequence[tuple[float, float]]  # (throughput of A, throughput of B), taken side by side

HALVINGS = 50  # of the search for a limit: far below any rounding of a report
MOST_WALSH = 400  # differences whose pairwise means are formed; above, the plain median is as good


class ABVerdict(str, Enum):
    """What B is against A."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNDECIDED = "undecided"

    @property
    def is_change(self) -> bool:
        return self in (ABVerdict.SLOWER, ABVerdict.FASTER)


@dataclass(frozen=True)
class ABResult:
    """B ÷ A with an interval that holds at every look together; `pairs` is how many the verdict took.

    The limits are 0 and infinity until the pairs suffice for one.
    """

    verdict: ABVerdict
    ratio: float
    low: float
    high: float
    pairs: int
    error: float


def judge(pairs: Pairs, *, matters: float = 0.01, error: float = 0.05) -> ABResult:
    """Compare the throughput of B with A's; a verdict, once reached, is wrong with probability ≤ `error`.

    SLOWER and FASTER: the ratio lies certainly beyond 1 − `matters`, or its reciprocal. SAME: certainly
    between them. Further pairs do not revoke a verdict, so that looking after each is free.
    """
    if not 0 < matters < 1 or not 0 < error < 1:
        raise ValueError("matters and error are shares between 0 and 1")
    differences = log_ratios(pairs)
    verdict, count = first_verdict(differences, matters, error)
    if not differences:
        return ABResult(verdict, 1.0, 0.0, math.inf, 0, error)
    centre = hodges_lehmann(differences)
    low = -_upper_limit([-difference for difference in differences], -centre, 2 / error)
    high = _upper_limit(differences, centre, 2 / error)
    return ABResult(verdict, math.exp(centre), math.exp(low), math.exp(high), count, error)


def nearer_level(pairs: Pairs, change: float, error: float) -> ABVerdict:
    """Tell which of two levels B is on: A's own (SAME), or `change` times A's (SLOWER or FASTER).

    Either answer is wrong with probability ≤ `error`, also where the level lies up to a quarter of the change
    off the one expected. UNDECIDED: go on.
    """
    if not change > 0 or change == 1 or not 0 < error < 1:
        raise ValueError("change is the ratio of the two levels and not 1; error is between 0 and 1")
    distance = math.log(change)
    towards = math.copysign(1.0, distance)
    # Positive: towards the changed level, whichever way that lies.
    moves = [towards * difference for difference in log_ratios(pairs)]
    quarter = abs(distance) / 4
    changed = _certain_after(moves, quarter, 1 / error)
    unchanged = _certain_after([-move for move in moves], -3 * quarter, 1 / error)
    if changed is None and unchanged is None:
        return ABVerdict.UNDECIDED
    if changed == unchanged:  # between the levels: the nearer one
        is_changed = hodges_lehmann(moves) > 2 * quarter
    else:
        is_changed = unchanged is None or (changed is not None and changed < unchanged)
    if not is_changed:
        return ABVerdict.SAME
    return ABVerdict.SLOWER if change < 1 else ABVerdict.FASTER


def first_verdict(differences: Sequence[float], matters: float, error: float) -> tuple[ABVerdict, int]:
    """Return the verdict that was reached first, and the number of pairs it took."""
    beyond, threshold = -math.log1p(-matters), 2 / error
    mirrored = [-difference for difference in differences]
    slower = _certain_after(mirrored, beyond, threshold)
    faster = _certain_after(differences, beyond, threshold)
    not_slower = _certain_after(differences, -beyond, threshold)
    not_faster = _certain_after(mirrored, -beyond, threshold)
    same = None if not_slower is None or not_faster is None else max(not_slower, not_faster)
    reached = [
        (count, verdict)
        for verdict, count in ((ABVerdict.SLOWER, slower), (ABVerdict.FASTER, faster), (ABVerdict.SAME, same))
        if count is not None
    ]
    if not reached:
        return ABVerdict.UNDECIDED, len(differences)
    count, verdict = min(reached, key=lambda pair: pair[0])
    return verdict, count


def log_ratios(pairs: Pairs) -> list[float]:
    """Return log(B ÷ A) of each pair; throughputs are positive and finite."""
    for pair in pairs:
        if not all(math.isfinite(value) and value > 0 for value in pair):
            raise ValueError(f"{pair} is not a pair of throughputs")
    return [math.log(b / a) for a, b in pairs]


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the median of all pairwise means (Hodges & Lehmann 1963): the centre of a symmetric sample."""
    if len(differences) > MOST_WALSH:
        return statistics.median(differences)
    return statistics.median(
        (first + second) / 2 for index, first in enumerate(differences) for second in differences[index:]
    )


def _certain_after(differences: Sequence[float], level: float, threshold: float) -> int | None:
    """Return after how many differences it was certain that they lie above `level`."""
    evidence = evidence_above_zero([difference - level for difference in differences])
    return next((count for count, total in enumerate(evidence, 1) if total >= threshold), None)


def _upper_limit(differences: Sequence[float], centre: float, threshold: float) -> float:
    """Return the least level that the differences certainly lie below; infinity where there is none yet."""

    def below(level: float) -> bool:
        return _certain_after([-difference for difference in differences], -level, threshold) is not None

    spread = max(differences) - min(differences)
    outside = max(differences) + 10 * spread + 1e-9
    if not below(outside):
        return math.inf
    inside = centre
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if below(middle) else (middle, outside)
    return outside


# Of the ratio: smaller differences do not matter.
MATTERS = 0.01
# The probability that any of the verdicts is wrong. The fewest pairs that carry one are six; see above.
ERROR = 0.05
FEWEST_PAIRS = 6

RatesByRound = Mapping[str, Mapping[int, float]]
"""The throughputs of each case by round."""


@dataclass(frozen=True)
class BaselineContrast:
    """One case beside the baseline: `pairs` have the rounds in which both gave a figure.

    `judgement` is None where no round has both.
    """

    baseline: str
    case: str
    pairs: tuple[tuple[float, float], ...]
    judgement: ABResult | None
    matters: float = MATTERS

    @property
    def verdict(self) -> ABVerdict:
        return self.judgement.verdict if self.judgement else ABVerdict.UNDECIDED

    @property
    def is_certain(self) -> bool:
        return self.verdict is not ABVerdict.UNDECIDED

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval of the ratio, which holds at every look together; None where there is none yet."""
        found = self.judgement
        return (found.low, found.high) if found and found.low > 0 and math.isfinite(found.high) else None

    @property
    def largest_difference(self) -> float | None:
        """How much the two differ at most, as a share of the baseline."""
        return max(abs(bound - 1) for bound in self.bounds) if self.bounds else None

    def fails_below(self, limit: float) -> bool:
        """Whether the ratio is less than the limit, and surely below 1."""
        found = self.judgement
        return found is not None and found.ratio < limit and found.high < 1


def contrasts(cases: Sequence[str], rates: RatesByRound) -> tuple[BaselineContrast, ...]:
    """Compare each case with the first; the verdicts share the probability of an error (union bound)."""
    baseline, *others = cases
    found = []
    for case in others:
        base, own = rates.get(baseline, {}), rates.get(case, {})
        pairs = tuple((base[number], own[number]) for number in sorted(base.keys() & own.keys()))
        judgement = judge(pairs, matters=MATTERS, error=ERROR / len(others)) if pairs else None
        found.append(BaselineContrast(baseline, case, pairs, judgement))
    return tuple(found)


@dataclass(frozen=True)
class FactDifference:
    """A recorded fact in which the sides differed; `remade` where the new trials differ in it as well."""

    name: str
    before: str | None
    after: str | None
    remade: bool = True


@dataclass(frozen=True)
class Confirmation:
    """`pairs` are throughputs (before, after) in order; `reason` says why nothing is certain."""

    case: str
    before: str
    after: str
    unit: str
    pairs: tuple[tuple[float, float], ...]
    judgement: ABResult
    matters: float
    seconds: float
    differences: tuple[FactDifference, ...] = ()
    reason: str = ""
    folder: str = ""

    @property
    def verdict(self) -> ABVerdict:
        return self.judgement.verdict

    @property
    def levels(self) -> tuple[float, float] | None:
        """Median throughputs of the two sides."""
        if not self.pairs:
            return None
        before, after = zip(*self.pairs, strict=True)
        return statistics.median(before), statistics.median(after)
