"""The changes of level in a history, improvements as well as regressions, and slow drifts.

A drift is a stretch between changes whose level moves steadily, along a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trainmark.measure.history.evidence import (
    MOST_LEAST,
    ChangeEvidence,
    bounded,
    change_evidence,
    explained,
    inflation,
    inflation_of,
    least_rank_probability,
    residuals_of,
)
from trainmark.measure.history.noise import (
    FEWEST_POINTS,
    HistoryNoise,
    NoiseDesign,
    best_cut,
    bounded_locally,
    candidate_cuts,
    design_of,
    noise_of,
)
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import CONFIDENCE, Floats, student_quantile, student_two_sided


@dataclass(frozen=True)
class LevelChange:
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
class LevelDrift:
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


# With fewer results no two levels can differ certainly, wherever between them the change is.
FEWEST_RESULTS = next(
    count
    for count in range(2 * FEWEST_POINTS, 100)
    if least_rank_probability(count // 2, count - count // 2) <= MOST_LEAST
)
# Points on each side among which the best place of a change is sought.
FARTHEST_MOVE = 200


def changes(points: Sequence[RunPoint], smallest: float = 0.0) -> tuple[LevelChange, ...]:
    """Return the places where the level of the points, in order of time, certainly changed.

    May be asked after every new point: the error rate is that of a history under watch. Changes smaller
    than the share `smallest` are not counted, and the levels on both of their sides are taken as one.
    """
    if len(points) < 2 * FEWEST_POINTS:
        return ()
    levels = np.array([math.log(point.median) for point in points])
    design = design_of(points)
    cuts = _certain(levels, design, candidate_cuts(levels, noise_of(design, levels).total), smallest)
    cuts = _certain(levels, design, _placed(levels, design, cuts), smallest)
    ends = [*cuts[1:], len(levels)] if cuts else []
    evidences = _evidences(levels, design, cuts)
    return tuple(
        _change(cut, stop, proof, len(levels)) for cut, stop, proof in zip(cuts, ends, evidences, strict=True)
    )


def _certain(levels: Floats, design: NoiseDesign, cuts: list[int], smallest: float) -> list[int]:
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


def _placed(levels: Floats, design: NoiseDesign, cuts: list[int]) -> list[int]:
    """Return each cut at its best place between its neighbours: those left out had moved it."""
    places, noise = list(cuts), noise_of(design, levels, cuts)
    for index in range(len(places)):
        first = places[index - 1] if index else 0
        stop = places[index + 1] if index + 1 < len(places) else len(levels)
        first, stop = max(first, places[index] - FARTHEST_MOVE), min(stop, places[index] + FARTHEST_MOVE)
        sides = (slice(first, places[index]), slice(places[index], stop))
        values = np.concatenate([bounded(levels[side], noise.total[side]) for side in sides])
        places[index] = first + best_cut(values)
    return places


def _evidences(levels: Floats, design: NoiseDesign, cuts: list[int]) -> list[ChangeEvidence]:
    if not cuts:
        return []
    noise = noise_of(design, levels, cuts)
    inflated = inflation_of(levels, noise, cuts)
    freedom = max(len(levels) - len(cuts) - 1, 1)
    ends = zip([0, *cuts[:-1]], cuts, [*cuts[1:], len(levels)], strict=True)
    residuals = residuals_of(levels, cuts)
    return [change_evidence(levels, noise, inflated, freedom, residuals, place) for place in ends]


def _change(cut: int, stop: int, proof: ChangeEvidence, n: int) -> LevelChange:
    reach = student_quantile(CONFIDENCE, proof.freedom) * proof.error
    # Bonferroni: two tests at every place.
    probability = min(1.0, 2 * min(proof.chance, proof.rank_chance) * n)
    ratio, low, high = (math.exp(proof.shift + more) for more in (0.0, -reach, reach))
    return LevelChange(cut, ratio, low, high, probability, stop - cut)


# A line through fewer points is hardly told from a step.
FEWEST_DRIFTING = 20
# The most that the test of a slope may leave to chance. It has no place to choose, unlike that of a step.
DRIFT_SIGNIFICANCE = 1e-4


def drifts(points: Sequence[RunPoint], changes: Sequence[LevelChange]) -> tuple[LevelDrift, ...]:
    """Return the stretches between the changes of these points along which the level certainly drifts."""
    if len(points) < FEWEST_DRIFTING:
        return ()
    levels = np.array([math.log(point.median) for point in points])
    cuts = [change.index for change in changes]
    noise = noise_of(design_of(points), levels, cuts)
    stretches = pairwise([0, *cuts, len(levels)])
    tested = (_drift(levels, noise, first, stop) for first, stop in stretches)
    return tuple(drift for drift in tested if drift is not None)


def _drift(levels: Floats, noise: HistoryNoise, first: int, stop: int) -> LevelDrift | None:
    """Return the drift of one stretch; None where the slope is not certain, or a step explains as much."""
    n, own = stop - first, slice(first, stop)
    if n < FEWEST_DRIFTING:
        return None
    values, weights = bounded_locally(levels[own], np.sqrt(noise.total[own])), 1 / noise.total[own]
    at = np.arange(n, dtype=np.float64)
    centred = at - weights @ at / weights.sum()
    contrast = weights * centred / float(weights @ centred**2)
    slope = float(contrast @ values)
    residuals = values - slope * centred
    residuals -= weights @ residuals / weights.sum()
    by_point = float(contrast**2 @ noise.variance[own])
    by_day = noise.day_variance * float(np.sum(np.bincount(noise.day[own], contrast) ** 2))
    error = math.sqrt((by_point + by_day) * inflation(float(weights @ residuals**2) / (n - 2), n))
    days = max(int(noise.day[stop - 1] - noise.day[first]) - 1, 1)
    freedom = (by_point + by_day) ** 2 / (by_point**2 / (n - 2) + by_day**2 / days)
    chance = student_two_sided(slope / error, freedom)
    if chance > DRIFT_SIGNIFICANCE or explained(values, weights, at) < _by_best_step(values, weights):
        return None
    reach = student_quantile(CONFIDENCE, freedom) * error
    ratio, low, high = (math.exp((slope + more) * (n - 1)) for more in (0.0, -reach, reach))
    return LevelDrift(first, stop - 1, ratio, low, high, chance)


def _by_best_step(values: Floats, weights: Floats) -> float:
    """Return by how much the best single step lowers the weighted sum of squares."""
    products = weights * (values - weights @ values / weights.sum())
    left, total = np.cumsum(weights)[:-1], weights.sum()
    by_cut = np.cumsum(products)[:-1] ** 2 * total / (left * (total - left))
    return float(by_cut[FEWEST_POINTS - 1 : len(by_cut) - FEWEST_POINTS + 1].max())
