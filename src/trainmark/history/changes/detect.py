"""The changes of level in a history, improvements as well as regressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trainmark.history.changes.evidence import Evidence, evidence, inflation_of
from trainmark.history.changes.model import Change
from trainmark.history.changes.noise import Noise, noise_of
from trainmark.history.changes.segments import FEWEST_POINTS, candidates
from trainmark.history.changes.student import quantile
from trainmark.history.series import Point
from trainmark.measure.statistics.arrays import Floats

CONFIDENCE = 0.95


def changes(points: Sequence[Point], smallest: float = 0.0) -> tuple[Change, ...]:
    """Return the places where the level of the points, in order of time, certainly changed.

    May be asked after every new point: the error rate is that of a history under watch. Changes smaller
    than the share `smallest` are not counted, and the levels on both of their sides are taken as one.
    """
    if len(points) < 2 * FEWEST_POINTS:
        return ()
    levels = np.array([math.log(point.median) for point in points])
    noise = noise_of(points, levels)
    cuts = candidates(levels, noise.total)
    while cuts:
        evidences = _evidences(levels, noise, cuts)
        doubtful = [
            (proof.chance, index)
            for index, proof in enumerate(evidences)
            if not proof.certain or abs(math.expm1(proof.shift)) < smallest
        ]
        if not doubtful:
            return tuple(
                _change(cut, stop, proof, len(levels))
                for cut, stop, proof in zip(cuts, [*cuts[1:], len(levels)], evidences, strict=True)
            )
        del cuts[max(doubtful)[1]]
    return ()


def _evidences(levels: Floats, noise: Noise, cuts: list[int]) -> list[Evidence]:
    inflation = inflation_of(levels, noise, cuts)
    freedom = max(len(levels) - len(cuts) - 1, 1)
    ends = zip([0, *cuts[:-1]], cuts, [*cuts[1:], len(levels)], strict=True)
    return [evidence(levels, noise, inflation, freedom, place) for place in ends]


def _change(cut: int, stop: int, proof: Evidence, n: int) -> Change:
    reach = quantile(CONFIDENCE, proof.freedom) * proof.error
    probability = min(1.0, max(proof.chance, proof.rank_chance) * n)
    ratio, low, high = (math.exp(proof.shift + more) for more in (0.0, -reach, reach))
    return Change(cut, ratio, low, high, probability, stop - cut)
