"""Energy of a window from power samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmark.events import DeviceSample
from trainmark.events.schema import is_host
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.trial.trace import Clock


def window_joules(
    samples: Sequence[DeviceSample], clock: Clock, spans: Sequence[tuple[float, float]]
) -> float | None:
    """Power of all devices integrated over the window (trapezoid); None where a device's is not known.

    The window is given as the spans in which the training did not pause.

    The host's processors count where they report power, but need not. A device needs two
    readings, one of them inside the window; beyond its outermost readings its power is taken as theirs.
    """
    power: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        readings = power.setdefault(sample.device, [])
        if sample.power_watts is not None:
            readings.append((clock.of_sample(sample), sample.power_watts))
    for host in [device for device, readings in power.items() if is_host(device) and not readings]:
        del power[host]
    joules = [_integral(readings, spans) for readings in power.values()]
    known = [each for each in joules if each is not None]
    return sum(known) if known and len(known) == len(joules) else None


def _integral(readings: list[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> float | None:
    inside = any(begin <= at <= end for begin, end in spans for at, _ in readings)
    if len(readings) < 2 or not inside:
        return None
    at, watts = np.array(sorted(readings)).T
    return sum(_span_integral(at, watts, begin, end) for begin, end in spans)


def _span_integral(at: Floats, watts: Floats, begin: float, end: float) -> float:
    grid = np.concatenate([[begin], at[(at > begin) & (at < end)], [end]])
    power = np.interp(grid, at, watts)
    return float(np.sum((power[1:] + power[:-1]) / 2 * np.diff(grid)))
