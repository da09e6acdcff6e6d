"""The largest batch that trains: which to try next, and what the tries say of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median


@dataclass(frozen=True)
class FitAttempt:
    """One batch, tried in a process of its own; `peak` is what the framework says it used, in bytes.

    `batch` may also be the value of an axis, such as a sequence length, which the program may have `refused`.
    """

    batch: int
    fits: bool
    peak: int | None = None
    seconds: float | None = None
    detail: str = ""
    refused: bool = False


@dataclass(frozen=True)
class MemoryLine:
    """Memory as a fixed cost and so much an image, in bytes; `residual` is how far a try is off at most."""

    fixed: float
    per_image: float
    residual: float

    def at(self, batch: int) -> float:
        return self.fixed + self.per_image * batch


@dataclass(frozen=True)
class MemoryPrediction:
    """What the smaller batches foretell of the largest, beside what it took."""

    batch: int
    predicted: float
    measured: int

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def next_batch(tries: Sequence[FitAttempt], step: int, most: int | None = None) -> int | None:
    """Twice the largest that fits until one does not, then halfway between; None where all is known.

    Only multiples of `step` count, from `step` up to `most`. What failed below a batch that fits was not
    for want of memory alone, and is not held against those above.
    """
    last = None if most is None else most // step * step
    reached = largest_fitting(tries, step) or 0
    failed = first_failure(tries, step)
    if reached == last:
        return None
    if failed is None:
        doubled = reached * 2 or step
        return doubled if last is None else min(doubled, last)
    if failed - reached <= step:
        return None
    return (reached + failed) // 2 // step * step


def largest_fitting(tries: Sequence[FitAttempt], step: int = 1) -> int | None:
    return max((each.batch for each in tries if each.fits and each.batch % step == 0), default=None)


def first_failure(tries: Sequence[FitAttempt], step: int = 1) -> int | None:
    """The smallest batch that does not fit above the largest that does."""
    reached = largest_fitting(tries, step) or 0
    failed = (each.batch for each in tries if not each.fits and each.batch % step == 0)
    return min((batch for batch in failed if batch > reached), default=None)


def memory_line(tries: Sequence[FitAttempt]) -> MemoryLine | None:
    """Theil and Sen's line through the peaks of what fits: the median slope of all pairs.

    A library that takes another algorithm at one batch moves a line of least squares, and not this one. None
    where fewer than two batches have a peak.
    """
    points = {each.batch: each.peak for each in tries if each.fits and each.peak is not None}
    if len(points) < 2:
        return None
    pairs = combinations(sorted(points.items()), 2)
    per_image = median((high - low) / (more - less) for (less, low), (more, high) in pairs)
    fixed = median(peak - per_image * batch for batch, peak in points.items())
    residual = max(abs(peak - fixed - per_image * batch) for batch, peak in points.items())
    return MemoryLine(fixed, per_image, residual)


def memory_prediction(tries: Sequence[FitAttempt]) -> MemoryPrediction | None:
    """The line through the smaller batches, held against the largest; None where they give no line."""
    reached = largest_fitting([each for each in tries if each.peak is not None])
    line = memory_line([each for each in tries if reached is not None and each.batch < reached])
    measured = next((each.peak for each in tries if each.fits and each.batch == reached), None)
    if line is None or reached is None or not measured:
        return None
    return MemoryPrediction(reached, line.at(reached), measured)
