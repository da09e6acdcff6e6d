"""Change points in step times, by ranks: one stall of a minute weighs no more than one of a second."""

from __future__ import annotations

import math

import numpy as np

from trainmark.measure.trace import Floats

# A shift smaller than this is no change, however certain a million steps make it: it is of the order of
# the difference that six trials can still tell apart.
RELEVANT_CHANGE = 0.01

# Segmentation tests many segments, so each test is stricter than the usual 5 %.
SIGNIFICANCE = 0.01

# A segment's median needs a few steps to mean anything.
SHORTEST_SEGMENT = 5

# Longer runs are first reduced to medians of consecutive steps; a boundary is then known to a five
# thousandth of the run.
MOST_POINTS = 5_000


def segments(seconds: Floats) -> list[tuple[int, int]]:
    """Stretches `[first, stop)` of steps on one level, by binary segmentation (Scott & Knott 1974)."""
    size = -(-len(seconds) // MOST_POINTS)
    points = batch_medians(seconds, size)
    bounds = _split(points, 0, len(points))
    stops = [min(stop * size, len(seconds)) for _, stop in bounds[:-1]] + [len(seconds)]
    return list(zip([0, *stops], stops, strict=False))


def batch_medians(seconds: Floats, size: int) -> Floats:
    """Medians of consecutive batches; steps that do not fill the last batch are left out."""
    if size == 1:
        return seconds
    whole = len(seconds) // size
    return np.asarray(np.median(seconds[: whole * size].reshape(whole, size), axis=1), dtype=np.float64)


def relevant(before: float, after: float) -> bool:
    return abs(before - after) > RELEVANT_CHANGE * after


def midranks(values: Floats) -> Floats:
    """Ranks from 1, ties sharing their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse.reshape(-1)], dtype=np.float64)


def rank_sums(ranks: Floats) -> Floats:
    """Pettitt's U after each step but the last: how far the steps so far rank above the rest."""
    n = len(ranks)
    return np.asarray((2 * np.cumsum(ranks) - np.arange(1, n + 1) * (n + 1))[:-1], dtype=np.float64)


def effective_share(ranks: Floats, cut: int) -> float:
    """The share of independent steps among autocorrelated ones, (1 − ρ) ÷ (1 + ρ) of both sides of a cut.

    Without it persistence alone looks like change (Serinaldi & Kilsby 2016).
    """
    residuals = ranks.copy()
    residuals[:cut] -= residuals[:cut].mean()
    residuals[cut:] -= residuals[cut:].mean()
    power = float(residuals @ residuals)
    if power == 0:
        return 1.0
    rho = min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.99)
    return (1 - rho) / (1 + rho)


def _split(points: Floats, first: int, stop: int) -> list[tuple[int, int]]:
    cut = _change_point(points[first:stop])
    if cut is None:
        return [(first, stop)]
    return _split(points, first, first + cut) + _split(points, first + cut, stop)


def _change_point(points: Floats) -> int | None:
    """Where the level most surely changes (Pettitt 1979), if it does, and by a relevant amount."""
    n = len(points)
    if n < 2 * SHORTEST_SEGMENT:
        return None
    ranks = midranks(points)
    inner = np.abs(rank_sums(ranks)[SHORTEST_SEGMENT - 1 : n - SHORTEST_SEGMENT])
    cut = int(np.argmax(inner)) + SHORTEST_SEGMENT
    strength = 6 * float(inner.max()) ** 2 / (n**3 + n**2) * effective_share(ranks, cut)
    if 2 * math.exp(-strength) > SIGNIFICANCE:
        return None
    return cut if relevant(float(np.median(points[:cut])), float(np.median(points[cut:]))) else None
