"""What is known of the training to be forecast: times of a step at some sizes, and its surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log2

from trainmark.forecast.size import ONE_DEVICE, Size
from trainmark.forecast.step.buckets import Bucket
from trainmark.forecast.step.fabric import ALGORITHMS, Fabric
from trainmark.forecast.step.simulate import SimulatedStep, simulate
from trainmark.forecast.step.stragglers import slowest_rank


@dataclass(frozen=True)
class Case:
    """`steps` holds seconds a step by size, with one device among them; `batch` is that of a device.

    `loaded` is whether every node reads and decodes samples at the rate it trains, `loader` how many a second
    a node can, `variation` how much the computation of one rank varies from step to step, and `doubt` the
    half-width of the measured steps' own intervals, relative.
    """

    steps: Mapping[Size, float]
    batch: float
    buckets: tuple[Bucket, ...]
    fabric: Fabric
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
        return simulate(self.buckets, compute, lambda count: reduce(size, count, self.fabric))

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
