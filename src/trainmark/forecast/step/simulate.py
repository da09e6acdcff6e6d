"""One training step as a sequence of events: buckets become ready, wait for their turn, are reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmark.forecast.step.buckets import Bucket


@dataclass(frozen=True)
class SimulatedStep:
    """Seconds of a step: computation on the slowest rank, communication beside it, and after it."""

    compute: float
    hidden: float
    exposed: float


def simulate(
    buckets: Sequence[Bucket], compute: float, reduce_seconds: Callable[[float], float]
) -> SimulatedStep:
    """The reduction of a bucket starts when its last gradient is there and the bucket before it is through.

    `compute` is what the slowest rank computes, `reduce_seconds` what reducing so many bytes takes.
    """
    free, hidden = 0.0, 0.0
    for ready, count in buckets:
        start = max(free, ready * compute)
        free = start + reduce_seconds(count)
        hidden += max(0.0, min(free, compute) - start)
    return SimulatedStep(compute, hidden, max(0.0, free - compute))
