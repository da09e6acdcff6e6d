"""Delta debugging: which of many differences make the change?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from trainmark.sequential.search import Side

Subset = tuple[int, ...]


@dataclass(frozen=True)
class Delta:
    """ddmin (Zeller & Hildebrandt 2002) over differences 0 … `count - 1`.

    `answers` says for each subset of them, applied to the good side, on which side it came out; a subset that
    cannot be run is SKIPPED. They are the whole state. That all of them together are bad is given.
    """

    count: int
    answers: Mapping[Subset, Side] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("there is no difference to look into")

    def answered(self, subset: Subset, side: Side) -> Delta:
        """Return the same with one more answer."""
        return Delta(self.count, {**self.answers, subset: side})

    @property
    def next_subset(self) -> Subset | None:
        """Return the subset to try; None at the end."""
        return self._walk()[1]

    @property
    def culprits(self) -> Subset:
        """The smallest subset so far that makes the change; at the end, no one of them can be left out."""
        return self._walk()[0]

    @property
    def unresolved(self) -> tuple[Subset, ...]:
        """The subsets of the culprits that could not be judged: the culprits may be fewer."""
        culprits = set(self.culprits)
        return tuple(
            subset
            for subset, side in self.answers.items()
            if side is Side.SKIPPED and culprits.issuperset(subset)
        )

    def _walk(self) -> tuple[Subset, Subset | None]:
        """Replay the answers: the culprits so far, and the subset that is asked for next."""
        current: Subset = tuple(range(self.count))
        pieces = 2
        while len(current) > 1:
            parts = split(current, pieces)
            complements = [tuple(item for item in current if item not in part) for part in parts]
            tried: dict[Subset, int] = dict.fromkeys(parts, 2)
            # With two pieces, the complement of one is the other.
            tried |= {rest: max(pieces - 1, 2) for rest in complements if pieces > 2}
            reduced = None
            for subset, next_pieces in tried.items():
                side = self.answers.get(subset)
                if side is None:
                    return current, subset
                if side is Side.BAD:
                    reduced = subset, next_pieces
                    break
            if reduced is not None:
                current, pieces = reduced
            elif pieces < len(current):
                pieces = min(2 * pieces, len(current))
            else:
                return current, None
        return current, None


def split(items: Subset, pieces: int) -> list[Subset]:
    """Return consecutive pieces of nearly equal length."""
    bounds = [len(items) * number // pieces for number in range(pieces + 1)]
    return [items[first:last] for first, last in pairwise(bounds) if first < last]


def decision_error(budget: float, number: int) -> float:
    """Return the error of the `number`-th decision, from 1: budget / (number · (number + 1)).

    How many decisions there will be is not known beforehand; these sum to the budget, however many.
    """
    return budget / (number * (number + 1))
