"""When a comparison of a bisection is decided, and what its error may be. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainmark.sequential.bisection import Pairs
from trainmark.sequential.search import Side
from trainmark.sequential.test import Judgement, Verdict, judge, side

# Of the whole error: that good and bad differ by less than their comparison says.
REFERENCE_SHARE = 0.2
# `side` holds its error for levels up to a quarter of the change away from where they are expected.
TOLERANCE = 0.75
# Of the change between good and bad: the least that must be certain before the search. Simulated bisections
# of 8 and of 200 items (benchmarks/bisection.py) cost least between 0.5 and 0.6.
ENOUGH = 0.6
# Of the culprit's own change: the least that must be certain before it is reported.
KNOWN_SIZE = 0.7


@dataclass(frozen=True)
class Rules:
    """`error` of a whole bisection, the smallest change that `matters`, and the `most` pairs of a step."""

    matters: float = 0.01
    error: float = 0.05
    most: int = 60

    @property
    def reference_error(self) -> float:
        return REFERENCE_SHARE * self.error

    @property
    def search_error(self) -> float:
        return (1 - REFERENCE_SHARE) * self.error

    def reference(self, pairs: Pairs) -> Judgement:
        """Compare good with bad."""
        return judge(pairs, matters=self.matters, error=self.reference_error)

    def reference_decided(self, pairs: Pairs) -> bool:
        """Whether good and bad are alike, or so surely apart that an item between them can be placed."""
        judgement = self.reference(pairs)
        if judgement.verdict in (Verdict.SLOWER, Verdict.FASTER):
            return certain_change(judgement) >= ENOUGH * abs(math.log(judgement.ratio))
        return judgement.verdict is Verdict.SAME

    def change(self, judgement: Judgement) -> float | None:
        """Return the ratio between the two levels that `side` is to tell apart; None where none is certain.

        It is taken so small that the bad level lies within the tolerance of `side`, or further away.
        """
        if judgement.verdict not in (Verdict.SLOWER, Verdict.FASTER):
            return None
        size = min(abs(math.log(judgement.ratio)), certain_change(judgement) / TOLERANCE)
        return math.exp(math.copysign(size, math.log(judgement.ratio)))

    def confirmation_decided(self, pairs: Pairs) -> bool:
        """Whether the culprit makes no change, or one whose size is known to about a half."""
        judgement = judge(pairs, matters=self.matters, error=self.error)
        if judgement.verdict in (Verdict.SLOWER, Verdict.FASTER):
            both = math.isfinite(judgement.high) and judgement.low > 0
            return both and certain_change(judgement) >= KNOWN_SIZE * abs(math.log(judgement.ratio))
        return judgement.verdict is Verdict.SAME


def certain_change(judgement: Judgement) -> float:
    """Return the logarithm of the smallest change that the interval allows; 0 where it allows none."""
    if judgement.verdict is Verdict.SLOWER:
        return max(0.0, -math.log(judgement.high))
    return max(0.0, math.log(judgement.low)) if judgement.low > 0 else 0.0


def side_of(pairs: Pairs, change: float, error: float) -> Side | None:
    """Place an item that was measured beside the good one; None where more pairs are needed."""
    verdict = side(pairs, change, error)
    if verdict is Verdict.UNDECIDED:
        return None
    return Side.GOOD if verdict is Verdict.SAME else Side.BAD
