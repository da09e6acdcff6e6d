"""The difference of two explanations: contributions that add up to it."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.explain.explanation import Subject


@dataclass(frozen=True)
class Contribution:
    name: str
    kind: str
    seconds_a: float
    seconds_b: float
    change: float


@dataclass(frozen=True)
class Difference:
    a: Subject
    b: Subject
    seconds_a: float
    seconds_b: float
    per: str
    contributions: tuple[Contribution, ...]
    notes: tuple[str, ...] = ()
