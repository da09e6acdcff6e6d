"""Whole bisections over made trials, where the culprit is known: how often is a wrong half taken?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from trainmark.measure import bisection
from trainmark.measure.bisection import BisectionRules, BisectionSearch, ChangeSide, MeasuredPairs, side_of

LEVEL = 1000.0  # throughput of the good side
SLOW_MODE = 0.05  # of a machine with two clock levels, and how often it is in the lower one
IN_SLOW_MODE = 0.3
Noise = Callable[[random.Random], float]


@dataclass(frozen=True)
class Outcome:
    """`suspects` are what is left at the end; None where good and bad were not distinguished."""

    suspects: range | None
    culprit: int
    pairs: int

    @property
    def wrong(self) -> bool:
        return self.suspects is not None and self.culprit not in self.suspects


def normal(spread: float) -> Noise:
    return lambda draw: draw.gauss(0.0, spread)


def heavy_tailed(spread: float) -> Noise:
    """Student's t with 3 degrees of freedom."""

    def noise(draw: random.Random) -> float:
        chi_squared = sum(draw.gauss(0.0, 1.0) ** 2 for _ in range(3))
        return spread * draw.gauss(0.0, 1.0) / math.sqrt(chi_squared / 3)

    return noise


def bimodal(spread: float) -> Noise:
    """A machine with two clock levels, and normal noise on top."""
    return lambda draw: draw.gauss(0.0, spread) - SLOW_MODE * (draw.random() < IN_SLOW_MODE)


def bisect(
    length: int,
    change: float,
    noise: Noise,
    seed: int,
    rules: BisectionRules = BisectionRules(),  # noqa: B008
    skipped: float = 0.0,
    drift: float = 0.0,
) -> Outcome:
    """Bisect `length` items, of which one changes the throughput to `change` times what it was.

    A share of the items is `skipped`; the machine slows by `drift` a pair, on both sides of a pair alike.
    """
    draw = random.Random(f"{length}/{change}/{seed}")
    culprit = draw.randrange(1, length)
    broken = {item for item in range(1, length - 1) if draw.random() < skipped}
    count = 0

    def pair(item: int) -> tuple[float, float]:
        nonlocal count
        count += 1
        level = LEVEL * math.exp(-drift * count)
        factor = change if item >= culprit else 1.0
        return level * math.exp(noise(draw)), level * factor * math.exp(noise(draw))

    def pairs_until(item: int, decided: Callable[[MeasuredPairs], bool]) -> MeasuredPairs:
        pairs: MeasuredPairs = ()
        while not decided(pairs) and len(pairs) < rules.most:
            pairs = (*pairs, pair(item))
        return pairs

    judged = rules.change(rules.reference(pairs_until(length - 1, rules.reference_decided)))
    if judged is None:
        return Outcome(None, culprit, count)
    looking, spent = BisectionSearch(length), 0.0
    while (item := looking.next_item) is not None:
        if item in broken:
            looking = looking.answered(item, ChangeSide.SKIPPED)
            continue
        error = bisection.decision_error(rules.search_error - spent, looking.decisions_left)
        looking, decision = _answered(looking, item, judged, error, pairs_until)
        spent += error if decision else 0.0
    return Outcome(looking.suspects, culprit, count)


def _answered(
    looking: BisectionSearch,
    item: int,
    change: float,
    error: float,
    pairs_until: Callable[[int, Callable[[MeasuredPairs], bool]], MeasuredPairs],
) -> tuple[BisectionSearch, bool]:
    pairs = pairs_until(item, lambda so_far: side_of(so_far, change, error) is not None)
    answer = side_of(pairs, change, error)
    return looking.answered(item, answer or ChangeSide.SKIPPED), answer is not None
