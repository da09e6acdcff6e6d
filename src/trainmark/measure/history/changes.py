"""The changes of level in a history, improvements as well as regressions, and slow drifts.

A change shows in Student's t, or in the exact Mann–Whitney test where one sample is small, whatever the shape
of the distribution. A drift is a stretch between changes whose level moves steadily, along a straight line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from trainmark.measure.history.noise import (
    BOUND,
    FEWEST_POINTS,
    HistoryNoise,
    NoiseDesign,
    best_cut,
    bounded_locally,
    candidate_cuts,
    design_of,
    noise_of,
    normal_scores,
)
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import (
    CONFIDENCE,
    Floats,
    midranks,
    orders_by_u,
    student_quantile,
    student_two_sided,
)


def weakened_probability(probability: float, factor: float) -> float:
    """Return the probability of a normal deviate whose variance was `factor` times what was thought."""
    if factor <= 1 or probability <= 0:
        return probability
    z = -NormalDist().inv_cdf(max(probability, 1e-300) / 2)
    return math.erfc(z / math.sqrt(2 * factor))


# Beyond so many points on the shorter side the mean of the points is as good as normal.
MOST_SHORTER = 12
MOST_LONGER = 100


def rank_probability(before: Floats, after: Floats) -> float:
    """Return the two-sided probability of so uneven an order of exchangeable points.

    Counted out where one side is short, with at most the `MOST_LONGER` nearest points of the other; by the
    normal approximation where both are long.
    """
    if min(len(before), len(after)) <= MOST_SHORTER:
        before, after = before[-MOST_LONGER:], after[:MOST_LONGER]
    m, n = len(before), len(after)
    wins = float(np.sum(midranks(np.concatenate([before, after]))[m:])) - n * (n + 1) / 2
    fewer = min(wins, m * n - wins)
    if min(m, n) <= MOST_SHORTER:
        return min(1.0, 2 * float(_cumulative_u(min(m, n), max(m, n))[int(fewer)]))
    deviation = math.sqrt(m * n * (m + n + 1) / 12)
    return math.erfc(max(m * n / 2 - fewer - 0.5, 0.0) / deviation / math.sqrt(2))


def least_rank_probability(m: int, n: int) -> float:
    """Return that of two samples of these sizes which do not overlap."""
    return 2 / math.comb(m + n, m)


@lru_cache(maxsize=2048)
def _cumulative_u(m: int, n: int) -> Floats:
    """Return the distribution function of U (Mann & Whitney 1947)."""
    return np.asarray(np.cumsum(orders_by_u(m, n)) / math.comb(m + n, m))


# The most that either test may leave to chance at one place of a long history; calibrated for looks after
# every point. A shorter one has fewer places and fewer looks at which chance may strike, so it is asked less.
SIGNIFICANCE = 5e-5
LONG_HISTORY = 100
MOST_ALLOWANCE = 2.0
RANK_SIGNIFICANCE = 1e-4
# Where even two samples that do not overlap leave more than this to chance, there are too few points.
MOST_LEAST = 0.01


@dataclass(frozen=True)
class ChangeEvidence:
    """`shift` of the log level with its standard `error`.

    `chance` is what Student's t leaves to chance, `rank_chance` what ranks do, `least_rank_chance` what
    they would if no value before reached one after. `run_of_luck`: one side is short, and values like its
    own are not rare enough on the other, as where a bimodal machine stays in one mode for some results.
    `over_line` is what a step explains beyond what a straight line through both sides does, in variances,
    less log n: the price of its place, a parameter more than the line has, by the BIC (Schwarz 1978).
    `allowed` is the most that a test may leave to chance in a history of this length.
    """

    shift: float
    error: float
    freedom: float
    chance: float
    rank_chance: float
    least_rank_chance: float
    run_of_luck: bool
    over_line: float
    allowed: float

    @property
    def certain(self) -> bool:
        if self.least_rank_chance > MOST_LEAST or self.over_line < 0:
            return False
        return self.rank_chance <= self.allowed or (self.chance <= self.allowed and not self.run_of_luck)


def significance(n: int) -> float:
    """Return the most that either test may leave to chance at one place of a history of n points."""
    return SIGNIFICANCE * min(max(LONG_HISTORY / n, 1.0), MOST_ALLOWANCE)


def change_evidence(
    levels: Floats,
    noise: HistoryNoise,
    inflated: float,
    freedom: float,
    residuals: Floats,
    place: tuple[int, int, int],
) -> ChangeEvidence:
    """Compare the points from the first of `place` to the second with those from there to the third."""
    first, cut, stop = place
    sides, both = (slice(first, cut), slice(cut, stop)), slice(first, stop)
    weights = [1 / noise.total[side] for side in sides]
    contrast = np.concatenate([-weights[0] / weights[0].sum(), weights[1] / weights[1].sum()])
    values = np.concatenate([bounded(levels[side], noise.total[side]) for side in sides])
    by_point = float(contrast**2 @ noise.variance[both])
    by_day = noise.day_variance * float(np.sum(np.bincount(noise.day[both], contrast) ** 2))
    error = math.sqrt((by_point + by_day) * inflated)
    shift = float(contrast @ values)
    # Satterthwaite (1946): two estimated variances of different certainty.
    days = max(int(noise.day[-1]) - 1, 1)
    freedom = (by_point + by_day) ** 2 / (by_point**2 / freedom + by_day**2 / days)
    # Ranks take the points as independent, which those of one day are not.
    dependence = (by_point + by_day) / float(contrast**2 @ noise.total[both]) * inflated
    by_rank = rank_probability(levels[sides[0]], levels[sides[1]])
    m, n = cut - first, stop - cut
    least = least_rank_probability(m, n)
    chance, rank_chance = student_two_sided(shift / error, freedom), weakened_probability(by_rank, dependence)
    over_line = -math.inf
    allowed = significance(len(levels))
    if min(chance, rank_chance) <= allowed:
        scores = normal_scores(levels[both])
        over_line = max(_over_line(shown, 1 / noise.total[both], m) for shown in (values, scores))
    lucky = min(m, n) <= MOST_SHORTER and (
        by_rank > max(RANK_SIGNIFICANCE, least) or _run_of_luck(levels, residuals, place)
    )
    return ChangeEvidence(shift, error, freedom, chance, rank_chance, least, lucky, over_line, allowed)


def residuals_of(levels: Floats, cuts: list[int]) -> Floats:
    """Return the points about their levels, those of a short level about the longer one beside it.

    Two short runs in one mode would otherwise each hide that the other is like it.
    """
    parts = np.split(levels, cuts)
    residuals = []
    for index, part in enumerate(parts):
        beside = parts[max(index - 1, 0) : index + 2] if len(part) <= MOST_SHORTER else [part]
        residuals.append(part - np.median(max(beside, key=len)))
    return np.concatenate(residuals)


def _run_of_luck(levels: Floats, residuals: Floats, place: tuple[int, int, int]) -> bool:
    """Return whether the points of the shorter side, seen from the other level, are like others elsewhere.

    Residuals of the whole history count: a second mode shows before a step as well as after it.
    """
    first, cut, stop = place
    short, other = slice(cut, stop), slice(first, cut)
    if cut - first < stop - cut:
        short, other = other, short
    values = levels[short] - np.median(levels[other])
    rest = np.concatenate([residuals[: short.start], residuals[short.stop :]])
    nearest = np.argsort(np.abs(np.delete(np.arange(len(levels)), short) - cut), kind="stable")[:MOST_LONGER]
    least = least_rank_probability(len(values), len(nearest))
    return rank_probability(rest[nearest], values) > max(RANK_SIGNIFICANCE, least)


def inflation_of(levels: Floats, noise: HistoryNoise, cuts: list[int]) -> float:
    """Return by how much the variance of a mean exceeds that of independent points; 1 where it hardly does.

    Where neighbours are alike (lag-one autocorrelation ρ), successive differences show 1 − ρ of the variance
    about the level, and the variance of a mean is (1 + ρ) ÷ (1 − ρ) times that of independent points.
    """
    parts = [slice(first, stop) for first, stop in zip([0, *cuts], [*cuts, len(levels)], strict=True)]
    squares = 0.0
    for part in parts:
        values = bounded(levels[part], noise.total[part])
        weights = 1 / noise.total[part]
        squares += float(weights @ (values - weights @ values / weights.sum()) ** 2)
    return inflation(squares / max(len(levels) - len(parts), 1), len(levels))


def inflation(ratio: float, n: int) -> float:
    """Return that of n points whose mean square about the level is so many times the expected one."""
    return 2 * ratio - 1 if ratio > 1 + 2 / math.sqrt(n) else max(ratio, 1.0)


def bounded(values: Floats, variance: Floats) -> Floats:
    """Return the values, none further than `BOUND` standard deviations from their median."""
    middle, reach = np.median(values), BOUND * np.sqrt(variance)
    return np.asarray(np.clip(values, middle - reach, middle + reach))


def _over_line(values: Floats, weights: Floats, cut: int) -> float:
    """Return by how much a step beats a straight line, in variances about the better one, less log n."""
    at = np.arange(len(values), dtype=np.float64)
    by_step, by_line = (explained(values, weights, shape) for shape in ((at >= cut).astype(np.float64), at))
    total = float(weights @ (values - weights @ values / weights.sum()) ** 2)
    variance = max(total - max(by_step, by_line), 1e-9 * total) / (len(values) - 2)
    return (by_step - by_line) / variance - math.log(len(values))


def explained(values: Floats, weights: Floats, shape: Floats) -> float:
    """Return by how much the shape lowers the weighted sum of squares."""
    centred = shape - weights @ shape / weights.sum()
    return float(weights @ (centred * values)) ** 2 / float(weights @ centred**2)


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
