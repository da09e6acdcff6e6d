"""The throughput to expect at a size, with an interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainmark.forecast.case import Case
from trainmark.forecast.model import estimate
from trainmark.forecast.size import ONE_DEVICE, Size
from trainmark.forecast.validation.scheme import Learned
from trainmark.forecast.validation.spread import interval
from trainmark.measure.figure import Interval


@dataclass(frozen=True)
class Forecast:
    """`efficiency` is the share of what as many single devices would do together."""

    size: Size
    throughput: float
    interval: Interval
    step_seconds: float
    efficiency: float


def forecast(case: Case, sizes: Iterable[Size], learned: Learned) -> tuple[Forecast, ...]:
    one = case.steps[ONE_DEVICE]
    forecasts = []
    for size in sizes:
        expected = estimate(case, size, learned.coefficients)
        throughput = case.throughput(size, expected.seconds)
        bounds = interval(expected, throughput, case.ideal(size), learned.spread, case.doubt)
        forecasts.append(Forecast(size, throughput, bounds, expected.seconds, one / expected.seconds))
    return tuple(forecasts)
