"""How wide an interval must be: by the errors on series that were not fitted, scaled to what is uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, hypot, log
from statistics import NormalDist
from typing import NamedTuple

from trainmark.forecast.model import Estimate
from trainmark.measure.figure import Interval

CONFIDENCE = 0.8
# The error where leaving the node costs nothing, against one where it costs the whole step.
FLOOR = 0.05


class Spread(NamedTuple):
    """Bounds of the logarithm of true over estimated seconds, for an estimate that is all uncertain."""

    low: float
    high: float


def uncertain(estimate: Estimate) -> float:
    """A forecast is unsure of what it adds to the measured step, and a little of the rest."""
    return FLOOR + abs(estimate.seconds - estimate.base) / estimate.seconds


def scaled_error(seconds: float, estimate: Estimate) -> float:
    return log(seconds / estimate.seconds) / uncertain(estimate)


def spread_of(errors: Sequence[float], confidence: float = CONFIDENCE) -> Spread:
    """Order statistics that hold the next error with `confidence`, as it would be one of n + 1."""
    ordered = sorted(errors)
    aside = round((1 - confidence) / 2 * (len(ordered) + 1), 9)
    rank = max(1, floor(aside))
    return Spread(ordered[rank - 1], ordered[-rank])


def doubt_of(measured: Interval | None) -> float:
    """The relative half-width of a measured interval, brought to the confidence of a forecast."""
    if measured is None:
        return 0.0
    ours, theirs = (NormalDist().inv_cdf((1 + share) / 2) for share in (CONFIDENCE, measured.confidence))
    return ours / theirs * log(measured.high / measured.low) / 2


def interval(
    estimate: Estimate, throughput: float, ideal: float, spread: Spread, doubt: float = 0.0
) -> Interval:
    """Of a throughput, and no higher than the ideal where that is higher than the throughput itself.

    The doubt of the measured step is added as an independent error.
    """
    scale = uncertain(estimate)
    slower, faster = hypot(max(0.0, spread.high) * scale, doubt), hypot(min(0.0, spread.low) * scale, doubt)
    high = min(throughput * exp(faster), max(ideal, throughput))
    return Interval(throughput * exp(-slower), high, CONFIDENCE)
