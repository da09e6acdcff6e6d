"""A change of level in a history."""

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
