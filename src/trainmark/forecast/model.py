"""The step time at a size that was not run: what was measured, and what more nodes add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from trainmark.forecast.case import Case
from trainmark.forecast.size import ONE_DEVICE, Size
from trainmark.forecast.step.stragglers import expected_largest

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
class Added:
    """What leaving one node adds to a step: `fixed` seconds, and seconds for each coefficient."""

    fixed: float
    per_coefficient: Coefficients

    def seconds(self, coefficients: Coefficients) -> float:
        return self.fixed + sum(a * b for a, b in zip(coefficients, self.per_coefficient, strict=True))


def added(case: Case, size: Size, node_step: float) -> Added:
    """Linear in the coefficients: this is what they are fitted by.

    All ranks wait for the slowest node: nodes are taken to differ by a normal spread, of which the largest
    of N counts.
    """
    wide, node = case.simulated(size), case.simulated(size.node)
    spread = expected_largest(size.nodes)
    load = case.batch * size.devices_per_node / node_step / (case.loader or LOADER_LIMIT)
    return Added(
        fixed=wide.exposed - node.exposed + wide.compute - node.compute,
        per_coefficient=Coefficients(
            interference=wide.hidden - node.hidden,
            unevenness=spread * max(0.0, node_step - case.steps[ONE_DEVICE]),
            loader_stall=spread * min(1.0, load) ** 2 * node_step if case.loaded else 0.0,
        ),
    )


@dataclass(frozen=True)
class Estimate:
    """Seconds a step at a size, and the seconds from which it was reckoned on."""

    seconds: float
    base: float


def estimate(case: Case, size: Size, coefficients: Coefficients) -> Estimate:
    """From the widest measured size with the same devices a node, else from one node of them."""
    base = case.known(size.devices_per_node) or size.node
    node_step = case.node_step(size.devices_per_node, coefficients.interference)
    start = case.steps.get(base, node_step)
    seconds = start
    for sign, each in ((1, size), (-1, base)):
        seconds += sign * added(case, each, node_step).seconds(coefficients)
    seconds = max(seconds, case.steps[ONE_DEVICE])
    if case.loader:
        seconds = max(seconds, case.batch * size.devices_per_node / case.loader)
    return Estimate(seconds, start if base in case.steps else case.steps[ONE_DEVICE])
