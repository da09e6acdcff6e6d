"""Speed-up of the strong series against the number of devices, with the line that would be linear."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.comparison import ScalingSeries
from trainmark.pages import number
from trainmark.pages.plots.scaling import ideal, linear_and_log, measured
from trainmark.view.chart.model import Figure, Mark, Plot
from trainmark.view.message import _

SERIES = "strong-"  # so that these do not answer to the legends of other plots


def plot(named: Sequence[tuple[str, ScalingSeries]]) -> Plot:
    marks = [mark for index, each in enumerate(named) for mark in _marks(*each, index)]
    devices = [point.result.key.devices for _name, series in named for point in series.points]
    views = linear_and_log(devices, marks, _("speedup"))
    return Plot("strong", [Figure("", views)], [name for name, _series in named])


def _marks(name: str, scaling: ScalingSeries, index: int) -> list[Mark]:
    series = f"{SERIES}{index}"
    devices = [point.result.key.devices for point in scaling.points]
    ratios = [point.speedup for point in scaling.points]
    texts = [f"{p.result.key.topology}: ×{number.ratio(p.speedup.value)}" for p in scaling.points]
    line = ideal(name, series, index, devices, [count / devices[0] for count in devices])
    values, intervals = [ratio.value for ratio in ratios], [ratio.interval for ratio in ratios]
    return [line, *measured(name, series, index, devices, values, intervals, texts)]
