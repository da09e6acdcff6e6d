"""A change of level in a history, and a drift of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """`index` is the first point of the new level, `ratio` the level after ÷ before, with its 95 % interval.

    `probability` is that of so large a difference anywhere in the history, had nothing changed.
    `confirmed_by` counts the points of the new level.
    """

    index: int
    ratio: float
    low: float
    high: float
    probability: float
    confirmed_by: int

    @property
    def regression(self) -> bool:
        return self.ratio < 1


@dataclass(frozen=True)
class Drift:
    """The level moves steadily from the point `first` to the point `last`.

    `ratio` is the level at the last ÷ at the first, with its 95 % interval; `probability` is that of so steep
    a line through these points, had nothing changed.
    """

    first: int
    last: int
    ratio: float
    low: float
    high: float
    probability: float

    @property
    def regression(self) -> bool:
        return self.ratio < 1

    @property
    def results(self) -> int:
        return self.last - self.first + 1
