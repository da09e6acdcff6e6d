"""Several cases beside one baseline in the same rounds of trials, looked at after each trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmark.sequential.test import Judgement, Verdict, judge

# Of the ratio: smaller differences do not matter.
MATTERS = 0.01
# The probability that any of the verdicts is wrong. The fewest pairs that carry one are six; see `evidence`.
ERROR = 0.05
FEWEST_PAIRS = 6

Rates = Mapping[str, Mapping[int, float]]
"""The throughputs of each case by round."""


@dataclass(frozen=True)
class Contrast:
    """One case beside the baseline: `pairs` have the rounds in which both gave a figure.

    `judgement` is None where no round has both.
    """

    baseline: str
    case: str
    pairs: tuple[tuple[float, float], ...]
    judgement: Judgement | None
    matters: float = MATTERS

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict if self.judgement else Verdict.UNDECIDED

    @property
    def is_certain(self) -> bool:
        return self.verdict is not Verdict.UNDECIDED

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


def contrasts(cases: Sequence[str], rates: Rates) -> tuple[Contrast, ...]:
    """Compare each case with the first; the verdicts share the probability of an error (union bound)."""
    baseline, *others = cases
    found = []
    for case in others:
        base, own = rates.get(baseline, {}), rates.get(case, {})
        pairs = tuple((base[number], own[number]) for number in sorted(base.keys() & own.keys()))
        judgement = judge(pairs, matters=MATTERS, error=ERROR / len(others)) if pairs else None
        found.append(Contrast(baseline, case, pairs, judgement))
    return tuple(found)
