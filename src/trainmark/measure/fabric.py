"""What a fabric does with a message: times by size, and the line of latency and bandwidth behind them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from trainmark.measure.statistics.intervals import median_interval


@dataclass(frozen=True)
class Point:
    """The median time of one size and its interval; a link's time is one way."""

    bytes: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """t(n) = latency + n ÷ bandwidth; the bandwidth is None where time does not grow with size."""

    latency_seconds: float
    bytes_per_second: float | None


@dataclass(frozen=True)
class Link:
    """Two ranks, the lower one first, and the time of a message between them."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    points: tuple[Point, ...]

    @property
    def same_node(self) -> bool:
        return self.nodes[0] == self.nodes[1]

    @property
    def latency(self) -> Point:
        """That of the smallest message: what a ping-pong shows, with its interval."""
        return self.points[0]

    @cached_property
    def bytes_per_second(self) -> float | None:
        return line(self.points).bytes_per_second

    @cached_property
    def rate_range(self) -> tuple[float, float] | None:
        """The least and the greatest bandwidth, from the times and from either end of their intervals."""
        ends = (
            [(each.bytes, each.low) for each in self.points],
            [(each.bytes, each.seconds) for each in self.points],
            [(each.bytes, each.high) for each in self.points],
        )
        rates = [rate for times in ends if (rate := fit(times).bytes_per_second)]
        return (min(rates), max(rates)) if rates else None


@dataclass(frozen=True)
class AllReduce:
    """A sum over `ranks` ranks on `nodes` nodes, by size."""

    ranks: int
    nodes: int
    points: tuple[Point, ...]

    def bus_bytes_per_second(self, point: Point) -> float:
        """What each rank must at least send in the time: 2(p − 1) ÷ p of the message."""
        return bus_factor(self.ranks) * point.bytes / point.seconds


@dataclass(frozen=True)
class Fabric:
    """One measurement; `nodes` has the name of each rank's node, `together` says whether pairs ran at once.

    `nccl_tests` is what those programs printed where they were there, as it is kept.
    """

    taken: str
    device: str
    backend: str
    together: bool
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    all_reduces: tuple[AllReduce, ...]
    nccl_tests: tuple[Mapping[str, Any], ...] = ()


def bus_factor(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def point(size: int, turns: Sequence[Sequence[float]]) -> Point:
    """From the times of each turn: the interval is that of all, widened to hold the median of every turn.

    Times of one turn are alike because they were taken together, and would claim too much by themselves.
    """
    times, medians = list(chain(*turns)), [statistics.median(turn) for turn in turns]
    interval = median_interval(times)
    bounds = (*medians, interval.low, interval.high) if interval else medians
    return Point(size, statistics.median(times), min(bounds), max(bounds))


def line(points: Iterable[Point]) -> Line:
    return fit([(point.bytes, point.seconds) for point in points])


def fit(times: Sequence[tuple[int, float]]) -> Line:
    """The line from which the times of all sizes differ least, each as a share of itself.

    Least absolute deviations: a size that falls off the line (another protocol, a cache left behind) does
    not bend it. Such a line, with neither number below zero, passes through two of the points or through
    one of them and a bound; there are few enough to try them all.
    """
    if not times:
        raise ValueError("no times to fit a line to")
    through_two = [
        (late - growth * more, growth)
        for (less, early), (more, late) in combinations(sorted(times), 2)
        if more > less
        for growth in [(late - early) / (more - less)]
    ]
    no_latency = [(0.0, seconds / size) for size, seconds in times]
    no_growth = [(seconds, 0.0) for _, seconds in times]
    candidates = [(a, b) for a, b in (*through_two, *no_growth, *no_latency) if a >= 0 and b >= 0]

    def deviation(candidate: tuple[float, float]) -> float:
        latency, growth = candidate
        return sum(abs(latency + growth * size - seconds) / seconds for size, seconds in times)

    latency, growth = min(candidates, key=deviation)
    return Line(latency, 1 / growth if growth > 0 else None)
