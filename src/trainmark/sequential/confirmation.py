"""What came of measuring the two sides of a suspected change again."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from trainmark.sequential.test import Judgement, Verdict


@dataclass(frozen=True)
class Difference:
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
    judgement: Judgement
    matters: float
    seconds: float
    differences: tuple[Difference, ...] = ()
    reason: str = ""
    folder: str = ""

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def levels(self) -> tuple[float, float] | None:
        """Median throughputs of the two sides."""
        if not self.pairs:
            return None
        before, after = zip(*self.pairs, strict=True)
        return statistics.median(before), statistics.median(after)
