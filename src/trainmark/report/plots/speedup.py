"""Speed-up of the strong series against the number of devices, with the line that would be linear."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.scaling import ScalingKind
from trainmark.pages import number
from trainmark.report.plots.scaling import ideal, linear_and_log, measured
from trainmark.report.sections.scaling import ScalingTable
from trainmark.view.chart.model import Figure, Mark, Plot

SERIES = "strong-"  # so that these do not answer to the legends of other plots


def plot(tables: Sequence[ScalingTable], t: dict[str, str]) -> Plot | None:
    drawn = [table for table in tables if table.series.kind is ScalingKind.STRONG]
    if not drawn:
        return None
    marks = [mark for index, table in enumerate(drawn) for mark in _marks(table, index, t)]
    devices = [point.result.key.devices for table in drawn for point in table.points]
    views = linear_and_log(devices, marks, t["speedup"], t)
    return Plot("strong", [Figure("", views)], [table.name for table in drawn])


def _marks(table: ScalingTable, index: int, t: dict[str, str]) -> list[Mark]:
    series = f"{SERIES}{index}"
    devices = [point.result.key.devices for point in table.points]
    ratios = [point.speedup for point in table.points]
    texts = [f"{p.result.key.topology}: ×{number.ratio(p.speedup.value)}" for p in table.points]
    line = ideal(
        f"{table.name} ({t['ideal']})", series, index, devices, [count / devices[0] for count in devices]
    )
    values, intervals = [ratio.value for ratio in ratios], [ratio.interval for ratio in ratios]
    return [line, *measured(table.name, series, index, devices, values, intervals, texts)]
