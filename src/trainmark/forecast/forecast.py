"""The throughput to expect at a size, with an interval; forecasts and errors as cells and records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from trainmark.forecast.fabric import ONE_DEVICE, Size
from trainmark.forecast.model import ForecastCase, estimate_step
from trainmark.forecast.validation import FittedModel, ForecastCheck, forecast_interval
from trainmark.measure.figure import Interval


@dataclass(frozen=True)
class SizeThroughput:
    """The throughput of all devices at a size; where it was forecast, its interval and step.

    `efficiency` is the share of what as many single devices would do together.
    """

    size: Size
    throughput: float
    interval: Interval | None = None
    step_seconds: float = 0.0
    efficiency: float = 0.0

    @property
    def rate(self) -> float:
        """That of one device."""
        return self.throughput / self.size.devices


def measured(case: ForecastCase) -> tuple[SizeThroughput, ...]:
    """What a forecast starts from."""
    sizes = sorted(case.steps.items())
    return tuple(SizeThroughput(size, case.throughput(size, seconds)) for size, seconds in sizes)


def forecast(case: ForecastCase, sizes: Iterable[Size], learned: FittedModel) -> tuple[SizeThroughput, ...]:
    one = case.steps[ONE_DEVICE]
    forecasts = []
    for size in sizes:
        expected = estimate_step(case, size, learned.coefficients)
        throughput = case.throughput(size, expected.seconds)
        bounds = forecast_interval(expected, throughput, case.ideal(size), learned.spread, case.doubt)
        efficiency = one / expected.seconds
        forecasts.append(SizeThroughput(size, throughput, bounds, expected.seconds, efficiency))
    return tuple(forecasts)


def forecast_record(one: SizeThroughput) -> dict[str, Any]:
    return {
        "topology": str(one.size),
        **one.size._asdict(),
        "devices": one.size.devices,
        "throughput": one.throughput,
        **(asdict(one.interval) if one.interval else {}),
        "step_seconds": one.step_seconds,
        "efficiency": one.efficiency,
    }


def check_record(check: ForecastCheck) -> dict[str, Any]:
    return {
        "source": check.series.source,
        "also_in": list(check.series.also_in),
        "series": check.series.name,
        "fitted": check.series.fitted.split(),
        "topology": str(check.size),
        "published": check.published,
        "predicted": check.predicted,
        **asdict(check.interval),
        "error": check.error,
        "covered": check.covered,
        "odd": check.series.odd,
    }
