"""The step time at a size that was not run: what is known of the training, and what more nodes add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log2
from typing import NamedTuple

from trainmark.forecast.fabric import ALGORITHMS, ONE_DEVICE, FabricModel, Size
from trainmark.forecast.step import (
    GradientBucket,
    SimulatedStep,
    expected_largest,
    simulate_step,
    slowest_rank,
)


@dataclass(frozen=True)
class ForecastCase:
    """`steps` holds seconds a step by size, with one device among them; `batch` is that of a device.

    `loaded` is whether every node reads and decodes samples at the rate it trains, `loader` how many a second
    a node can, `variation` how much the computation of one rank varies from step to step, and `doubt` the
    half-width of the measured steps' own intervals, relative.
    """

    steps: Mapping[Size, float]
    batch: float
    buckets: tuple[GradientBucket, ...]
    fabric: FabricModel
    algorithm: str = "hierarchical"
    loaded: bool = False
    loader: float | None = None
    variation: float = 0.0
    doubt: float = 0.0

    def throughput(self, size: Size, seconds: float) -> float:
        return self.batch * size.devices / seconds

    def ideal(self, size: Size) -> float:
        """As many single devices together."""
        return self.throughput(size, self.steps[ONE_DEVICE])

    def simulated(self, size: Size) -> SimulatedStep:
        reduce = ALGORITHMS[self.algorithm]
        compute = self.steps[ONE_DEVICE] * slowest_rank(size.devices, self.variation)
        return simulate_step(self.buckets, compute, lambda count: reduce(size, count, self.fabric))

    def known(self, devices_per_node: int) -> Size | None:
        """The largest measured size with as many devices a node."""
        alike = [size for size in self.steps if size.devices_per_node == devices_per_node]
        return max(alike, default=None)

    @cached_property
    def _overhead_slope(self) -> float | None:
        """Seconds that a step on one node grows by with each doubling of the devices, by least squares."""
        one = self.steps[ONE_DEVICE]
        points = [(log2(size.devices), step - one) for size, step in self.steps.items() if size.nodes == 1]
        weight = sum(x * x for x, _ in points)
        return sum(x * y for x, y in points) / weight if weight else None

    def node_step(self, devices_per_node: int, interference: float) -> float:
        """Seconds a step of one node: as measured, else from its other sizes, else as simulated."""
        size = Size(1, devices_per_node)
        if size in self.steps:
            return self.steps[size]
        one = self.steps[ONE_DEVICE]
        if self._overhead_slope is not None:
            return max(one, one + self._overhead_slope * log2(devices_per_node))
        run = self.simulated(size)
        return run.compute + interference * run.hidden + run.exposed


# Images a second that the nodes of the published series can load at most, about; 48 cores each. The fitted
# `loader_stall` takes up what this is wrong by.
LOADER_LIMIT = 10_000.0


class Coefficients(NamedTuple):
    """What the published series have in common, and no single machine's measurement tells.

    interference: seconds that a step loses for each second of communication hidden behind computation.
    unevenness: how far nodes differ in what a step loses on one node, as a share of that loss.
    loader_stall: how far nodes differ in waiting for data, as a share of a step, when loaders are at their
    limit; it falls with the square of their load.
    """

    interference: float
    unevenness: float
    loader_stall: float


@dataclass(frozen=True)
class AddedTime:
    """What leaving one node adds to a step: `fixed` seconds, and seconds for each coefficient."""

    fixed: float
    per_coefficient: Coefficients

    def seconds(self, coefficients: Coefficients) -> float:
        return self.fixed + sum(a * b for a, b in zip(coefficients, self.per_coefficient, strict=True))


def added_time(case: ForecastCase, size: Size, node_step: float) -> AddedTime:
    """Linear in the coefficients: this is what they are fitted by.

    All ranks wait for the slowest node: nodes are taken to differ by a normal spread, of which the largest
    of N counts.
    """
    wide, node = case.simulated(size), case.simulated(size.node)
    spread = expected_largest(size.nodes)
    load = case.batch * size.devices_per_node / node_step / (case.loader or LOADER_LIMIT)
    return AddedTime(
        fixed=wide.exposed - node.exposed + wide.compute - node.compute,
        per_coefficient=Coefficients(
            interference=wide.hidden - node.hidden,
            unevenness=spread * max(0.0, node_step - case.steps[ONE_DEVICE]),
            loader_stall=spread * min(1.0, load) ** 2 * node_step if case.loaded else 0.0,
        ),
    )


@dataclass(frozen=True)
class StepEstimate:
    """Seconds a step at a size, and the seconds from which it was reckoned on."""

    seconds: float
    base: float


def estimate_step(case: ForecastCase, size: Size, coefficients: Coefficients) -> StepEstimate:
    """From the widest measured size with the same devices a node, else from one node of them."""
    base = case.known(size.devices_per_node) or size.node
    node_step = case.node_step(size.devices_per_node, coefficients.interference)
    start = case.steps.get(base, node_step)
    seconds = start
    for sign, each in ((1, size), (-1, base)):
        seconds += sign * added_time(case, each, node_step).seconds(coefficients)
    seconds = max(seconds, case.steps[ONE_DEVICE])
    if case.loader:
        seconds = max(seconds, case.batch * size.devices_per_node / case.loader)
    return StepEstimate(seconds, start if base in case.steps else case.steps[ONE_DEVICE])
