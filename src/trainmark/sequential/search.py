"""Bisection of an ordered list whose items can only be judged with some risk of error, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import ceil, log2


class Side(str, Enum):
    """On which side of the change an item lies; SKIPPED where that is not known."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Search:
    """Items 0 (good) to `length - 1` (bad), and which side each item asked about so far was on.

    The whole state is `answers`: a search read back from disk goes on where it stopped.
    """

    length: int
    answers: Mapping[int, Side] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.length < 2:
            raise ValueError("a search needs a good and a bad item")

    @property
    def first_bad(self) -> int:
        return min((item for item, side in self.answers.items() if side is Side.BAD), default=self.length - 1)

    @property
    def last_good(self) -> int:
        """The last good item before the first bad one: a good item after it is no bound."""
        items = (item for item, side in self.answers.items() if side is Side.GOOD and item < self.first_bad)
        return max(items, default=0)

    @property
    def candidates(self) -> list[int]:
        """Return the items between the last good and the first bad one that may still be asked about."""
        between = range(self.last_good + 1, self.first_bad)
        return [item for item in between if item not in self.answers]

    @property
    def suspects(self) -> range:
        """The items of which one made the change: a single one, unless its neighbours were skipped."""
        return range(self.last_good + 1, self.first_bad + 1)

    @property
    def next_item(self) -> int | None:
        """Return the item to ask about; None at the end.

        The middle first. With each skip the place moves towards the ends, in the order ½, ¼, ¾, ⅛, ⅞, …:
        builds that fail together lie side by side, and the way out of a block of them is short.
        """
        candidates = self.candidates
        if not candidates:
            return None
        skips = sum(side is Side.SKIPPED and item in self.suspects for item, side in self.answers.items())
        aim = self.last_good + place_after(skips) * (self.first_bad - self.last_good)
        return min(candidates, key=lambda item: (abs(item - aim), item))

    @property
    def decisions_left(self) -> int:
        """How often the interval must still be halved; 1 only where one candidate is left."""
        return ceil(log2(len(self.candidates) + 1))

    def answered(self, item: int, side: Side) -> Search:
        """Return the search with one more answer."""
        return Search(self.length, {**self.answers, item: side})


def place_after(skips: int) -> float:
    """Return where in the interval to ask after so many skips: ½, ¼, ¾, ⅛, ⅞, 1/16, …"""
    near = 0.5 ** ((skips + 1) // 2 + 1)
    return 1 - near if skips and skips % 2 == 0 else near


def decision_error(budget: float, decisions_left: int) -> float:
    """Return the error that the next decision may have: an equal share of what is left of the budget.

    By the union bound, a bisection takes a wrong half with at most the probability that all its decisions
    together may spend. A split off the middle, after skips, leaves more decisions than were counted on; as
    every share but that of the very last decision leaves something, the budget is never overspent.
    """
    return budget / max(1, decisions_left)
