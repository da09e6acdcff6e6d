"""What speaks for a change of level between two stretches of points.

With Student's t, and the exact Mann–Whitney test where one sample is small, whatever the shape of the
distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from trainmark.measure.history.noise import BOUND, HistoryNoise, normal_scores
from trainmark.measure.statistics import Floats, midranks, orders_by_u, student_two_sided


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
