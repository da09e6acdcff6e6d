"""Change points in step times, by ranks: one stall of a minute weighs no more than one of a second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trainmark.measure.statistics.arrays import Floats

# A shift smaller than this is no change, however certain a million steps make it: it is of the order of
# the difference that six trials can still tell apart.
RELEVANT_CHANGE = 0.01

# Segmentation tests many segments of every run, so each test is far stricter than the usual 5 %.
SIGNIFICANCE = 0.002

# A segment's median needs a few steps to mean anything.
SHORTEST_SEGMENT = 5

# Longer runs are first reduced to medians of consecutive steps; a boundary is then known to a five
# thousandth of the run.
MOST_POINTS = 5_000


def segments(seconds: Floats) -> list[tuple[int, int]]:
    """Stretches `[first, stop)` of steps whose neighbours are on relevantly different levels.

    Binary segmentation (Scott & Knott 1974) cuts wherever a change is certain; then neighbours that do not
    relevantly differ are merged again, the most alike first.
    """
    size = -(-len(seconds) // MOST_POINTS)
    points = batch_medians(seconds, size)
    inner = _merged(points, _cuts(points, 0))
    bounds = [0, *(cut * size for cut in inner), len(seconds)]
    return list(pairwise(bounds))


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


def independent_share(residuals: Floats) -> float:
    """How many independent steps one autocorrelated step is worth: (1 − ρ) ÷ (1 + ρ).

    Without it persistence alone looks like change (Serinaldi & Kilsby 2016).
    """
    power = float(residuals @ residuals)
    if power == 0:
        return 1.0
    rho = min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.99)
    return (1 - rho) / (1 + rho)


def share_around_cuts(ranks: Floats, cuts: Sequence[int]) -> float:
    """The independent share of what the cuts leave unexplained."""
    return independent_share(np.concatenate([part - part.mean() for part in np.split(ranks, cuts)]))


def _cuts(points: Floats, offset: int) -> list[int]:
    """All certain changes, in order; positions count from `offset`."""
    cuts = _change(points)
    positions: list[int] = []
    for first, stop in pairwise([0, *cuts, len(points)]) if cuts else ():
        positions += [*_cuts(points[first:stop], offset + first), offset + stop]
    return positions[:-1]


def _change(points: Floats) -> list[int]:
    """The most certain change of level, or both ends of the most certain episode on another level, or none.

    A change by the largest rank sum (Pettitt 1979); an episode, which leaves the levels before and after it
    alike and so hides from that test, by the range of the rank sums (Kuiper 1960). Scaled by their
    variance the rank sums of a level run are a Brownian bridge, whence both tails.
    """
    n = len(points)
    if n < 2 * SHORTEST_SEGMENT:
        return []
    ranks = midranks(points)
    bridge = rank_sums(ranks)[SHORTEST_SEGMENT - 1 : n - SHORTEST_SEGMENT] / math.sqrt((n**3 + n**2) / 3)
    highest, lowest = int(np.argmax(bridge)), int(np.argmin(bridge))
    top, bottom = float(bridge[highest]), float(bridge[lowest])
    cut = (highest if top > -bottom else lowest) + SHORTEST_SEGMENT
    height = max(top, -bottom) ** 2 * share_around_cuts(ranks, [cut])
    if 2 * math.exp(-2 * height) < SIGNIFICANCE:
        return [cut]
    if abs(highest - lowest) < SHORTEST_SEGMENT:
        return []
    episode = sorted([highest + SHORTEST_SEGMENT, lowest + SHORTEST_SEGMENT])
    extent = (top - bottom) ** 2 * share_around_cuts(ranks, episode)
    # The tail formula holds for small probabilities only, and those need an extent well above 1.
    return episode if extent > 1 and 2 * (4 * extent - 1) * math.exp(-2 * extent) < SIGNIFICANCE else []


def _merged(points: Floats, cuts: list[int]) -> list[int]:
    """The cuts that are left when neighbours on one level are joined."""
    cuts = list(cuts)
    while cuts:
        levels = [float(np.median(part)) for part in np.split(points, cuts)]
        excesses = [abs(before - after) - RELEVANT_CHANGE * after for before, after in pairwise(levels)]
        if min(excesses) > 0:
            break
        del cuts[excesses.index(min(excesses))]
    return cuts
