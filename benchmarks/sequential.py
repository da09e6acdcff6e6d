"""The sequential test on simulated pairs whose truth is known: wrong verdicts, and pairs until a verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.row import Row
from trainmark.measure.ab import ABVerdict, b_first, first_verdict, nearer_level
from trainmark.measure.statistics import Floats

ERROR, MATTERS, CHANGE = 0.05, 0.01, 0.97
OUTLIERS, OUTLIER = 0.05, 0.8
UNDECIDED = ABVerdict.UNDECIDED
DRIFT = -0.001  # of the logarithm of the throughput, from each trial to the next
Noise = Callable[[np.random.Generator, tuple[int, ...], float], Floats]


def normal(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    return rng.normal(0, spread, shape)


def laplace(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    return rng.laplace(0, spread / np.sqrt(2), shape)


def with_outliers(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    """One trial in twenty has 0.8 of its throughput."""
    return rng.normal(0, spread, shape) + np.where(rng.random(shape) < OUTLIERS, np.log(OUTLIER), 0)


def two_levels(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Floats:
    """A machine with two clock levels and little noise within them."""
    return rng.normal(0, spread / 5, shape) + np.where(rng.random(shape) < 0.5, 2 * spread, 0)


NOISES: dict[str, Noise] = {
    "normal": normal,
    "Laplace": laplace,
    "outliers": with_outliers,
    "two levels": two_levels,
}


def measure(simulations: int = 1000, most_pairs: int = 120) -> list[Row]:
    """Wrong verdicts in 100 comparisons at 1 % noise a trial, and the median number of pairs to a verdict."""
    rows = []
    for name, noise in NOISES.items():
        rows += [
            _share(f"{name}, −1 % called a change", _at_the_limit(noise, simulations, most_pairs)),
            _share(f"{name}, −3 % on the wrong side", _wrong_side(noise, simulations, most_pairs)),
        ]
    rows.append(_share("drift shared by both sides", _drifting(simulations, most_pairs)))
    for spread in (0.005, 0.01, 0.02):
        for name, noise in NOISES.items():
            rows.append(
                _pairs(f"{name}, −3 % at {spread:.1%} noise", noise, spread, 0.97, simulations, most_pairs)
            )
    for spread in (0.005, 0.01):
        rows.append(
            _pairs(
                f"normal, no change at {spread:.1%} noise", normal, spread, 1.0, simulations, 3 * most_pairs
            )
        )
    for spread in (0.005, 0.01, 0.02):
        for name in ("normal", "outliers"):
            what = f"t e-process, {name}, −3 % at {spread:.1%} noise"
            rows.append(_pairs_by_t(what, NOISES[name], spread, simulations, most_pairs))
    rows += [_side_pairs(spread, simulations, most_pairs) for spread in (0.005, 0.01, 0.02)]
    return rows


def differences_of(noise: Noise, spread: float, ratio: float, simulations: int, pairs: int) -> Floats:
    """Return log(B ÷ A) of each pair, one simulation a row."""
    rng = np.random.default_rng(0)
    both = noise(rng, (2, simulations, pairs), spread)
    return np.log(ratio) + both[1] - both[0]


def _at_the_limit(noise: Noise, simulations: int, pairs: int) -> float:
    """B is slower by exactly what matters: any verdict is one too many."""
    table = differences_of(noise, 0.01, 1 - MATTERS, simulations, pairs)
    verdicts = [first_verdict(list(row), MATTERS, ERROR)[0] for row in table]
    return 100 * sum(verdict is not ABVerdict.UNDECIDED for verdict in verdicts) / simulations


def _wrong_side(noise: Noise, simulations: int, pairs: int) -> float:
    """Of a bisection between two levels that are 3 % apart: the larger of the two shares of wrong answers."""
    shares = []
    for ratio, wrong in ((1.0, ABVerdict.SLOWER), (CHANGE, ABVerdict.SAME)):
        table = np.exp(differences_of(noise, 0.01, ratio, simulations, pairs))
        answers = [nearer_level([(1.0, float(value)) for value in row], CHANGE, ERROR) for row in table]
        shares.append(100 * sum(answer is wrong for answer in answers) / simulations)
    return max(shares)


def _side_pairs(spread: float, simulations: int, most: int) -> Row:
    """Return the pairs of one step of a bisection over a 3 % change, at an error of 1 %."""
    table = np.exp(differences_of(normal, spread, 1.0, simulations // 5, most))
    counts = [_pairs_to_side([(1.0, float(value)) for value in row]) for row in table]
    low, middle, high = np.percentile(counts, (25, 50, 75))
    what = f"sequential: bisection step at {spread:.1%} noise"
    return Row(what, float(middle), "pairs", None, float(low), float(high))


def _pairs_to_side(pairs: list[tuple[float, float]]) -> int:
    looks = (
        count for count in range(1, len(pairs)) if nearer_level(pairs[:count], CHANGE, 0.01) is not UNDECIDED
    )
    return next(looks, len(pairs))


def _pairs_by_t(what: str, noise: Noise, spread: float, simulations: int, most: int) -> Row:
    """Return the pairs until the e-process of a t-test excludes −1 %, for comparison.

    With a standard normal prior on the mean in units of the standard deviation (Wang & Ramdas 2024, §4); its
    error rate is proven for normal noise.
    """
    table = differences_of(noise, spread, CHANGE, simulations, most) - np.log(1 - MATTERS)
    counts = np.arange(1, most + 1)
    means = np.cumsum(table, axis=1) / counts
    squares = np.maximum(np.cumsum(table**2, axis=1) - counts * means**2, 1e-300)
    ratio, shrunk = counts * means**2 / squares, 1 / (counts + 1)
    logs = 0.5 * np.log(shrunk) + counts / 2 * (np.log1p(ratio) - np.log1p(shrunk * ratio))
    logs[:, 0] = 0  # one difference has no variance
    reached = logs >= np.log(1 / ERROR)
    pairs = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, most)
    low, middle, high = np.percentile(pairs, (25, 50, 75))
    return Row(f"sequential: {what}", float(middle), "pairs", None, float(low), float(high))


def _drifting(simulations: int, pairs: int) -> float:
    """Both sides slow down from trial to trial; their order is drawn for each pair."""
    table = differences_of(normal, 0.005, 1.0, simulations, pairs)
    for seed, row in enumerate(table):
        row += [-DRIFT if b_first(seed, index) else DRIFT for index in range(pairs)]
    verdicts = [first_verdict(list(row), 0.001, ERROR)[0] for row in table]
    return 100 * sum(verdict in (ABVerdict.SLOWER, ABVerdict.FASTER) for verdict in verdicts) / simulations


def _share(what: str, value: float) -> Row:
    return Row(f"sequential: {what}", value, "in 100", 100 * ERROR)


def _pairs(what: str, noise: Noise, spread: float, ratio: float, simulations: int, most: int) -> Row:
    """Return the median and the quartiles of the pairs until a verdict; what was undecided took the most."""
    table = differences_of(noise, spread, ratio, simulations, most)
    counts = [first_verdict(list(row), MATTERS, ERROR)[1] for row in table]
    low, middle, high = np.percentile(counts, (25, 50, 75))
    return Row(f"sequential: {what}", float(middle), "pairs", None, float(low), float(high))
