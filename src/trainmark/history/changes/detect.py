"""The changes of level in a history, improvements as well as regressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainmark.history.changes.evidence import (
    CONFIDENCE,
    MOST_LEAST,
    Evidence,
    bounded,
    evidence,
    inflation_of,
    residuals_of,
)
from trainmark.history.changes.model import Change
from trainmark.history.changes.noise import Design, design_of, noise_of
from trainmark.history.changes.ranks import least_rank_probability
from trainmark.history.changes.segments import FEWEST_POINTS, best_place, candidates
from trainmark.history.changes.student import quantile
from trainmark.history.series import Point
from trainmark.measure.statistics.arrays import Floats

# With fewer results no two levels can differ certainly, wherever between them the change is.
FEWEST_RESULTS = next(
    count
    for count in range(2 * FEWEST_POINTS, 100)
    if least_rank_probability(count // 2, count - count // 2) <= MOST_LEAST
)
# Points on each side among which the best place of a change is sought.
FARTHEST = 200


def changes(points: Sequence[Point], smallest: float = 0.0) -> tuple[Change, ...]:
    """Return the places where the level of the points, in order of time, certainly changed.

    May be asked after every new point: the error rate is that of a history under watch. Changes smaller
    than the share `smallest` are not counted, and the levels on both of their sides are taken as one.
    """
    if len(points) < 2 * FEWEST_POINTS:
        return ()
    levels = np.array([math.log(point.median) for point in points])
    design = design_of(points)
    cuts = _certain(levels, design, candidates(levels, noise_of(design, levels).total), smallest)
    cuts = _certain(levels, design, _placed(levels, design, cuts), smallest)
    ends = [*cuts[1:], len(levels)] if cuts else []
    evidences = _evidences(levels, design, cuts)
    return tuple(
        _change(cut, stop, proof, len(levels)) for cut, stop, proof in zip(cuts, ends, evidences, strict=True)
    )


def _certain(levels: Floats, design: Design, cuts: list[int], smallest: float) -> list[int]:
    """Return the cuts without those that are not certain, the least certain left out first."""
    while cuts:
        evidences = _evidences(levels, design, cuts)
        doubtful = [
            (min(proof.chance, proof.rank_chance), index)
            for index, proof in enumerate(evidences)
            if not proof.certain or abs(math.expm1(proof.shift)) < smallest
        ]
        if not doubtful:
            break
        cuts = [cut for cut in cuts if cut != cuts[max(doubtful)[1]]]
    return cuts


def _placed(levels: Floats, design: Design, cuts: list[int]) -> list[int]:
    """Return each cut at its best place between its neighbours: those left out had moved it."""
    places, noise = list(cuts), noise_of(design, levels, cuts)
    for index in range(len(places)):
        first = places[index - 1] if index else 0
        stop = places[index + 1] if index + 1 < len(places) else len(levels)
        first, stop = max(first, places[index] - FARTHEST), min(stop, places[index] + FARTHEST)
        sides = (slice(first, places[index]), slice(places[index], stop))
        values = np.concatenate([bounded(levels[side], noise.total[side]) for side in sides])
        places[index] = first + best_place(values)
    return places


def _evidences(levels: Floats, design: Design, cuts: list[int]) -> list[Evidence]:
    if not cuts:
        return []
    noise = noise_of(design, levels, cuts)
    inflated = inflation_of(levels, noise, cuts)
    freedom = max(len(levels) - len(cuts) - 1, 1)
    ends = zip([0, *cuts[:-1]], cuts, [*cuts[1:], len(levels)], strict=True)
    residuals = residuals_of(levels, cuts)
    return [evidence(levels, noise, inflated, freedom, residuals, place) for place in ends]


def _change(cut: int, stop: int, proof: Evidence, n: int) -> Change:
    reach = quantile(CONFIDENCE, proof.freedom) * proof.error
    # Bonferroni: two tests at every place.
    probability = min(1.0, 2 * min(proof.chance, proof.rank_chance) * n)
    ratio, low, high = (math.exp(proof.shift + more) for more in (0.0, -reach, reach))
    return Change(cut, ratio, low, high, probability, stop - cut)
