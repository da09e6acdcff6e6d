"""Every trial as a dot beside its case's median, so that cases of any speed share one scale."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Result
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.report.sections.group import Group
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Chart, Dots, Figure, Panel, Plot, Whiskers

ROW = 34


def plot(groups: Sequence[Group], t: dict[str, str]) -> Plot | None:
    named = [(f"{group.name} {result.key.topology}", result) for group in groups for result in group.results]
    if not named:
        return None
    intervals, trials = _intervals(named), _trials(named)
    marks = [intervals, trials, _medians(named, t)]
    across = linear((*intervals.low, *intervals.high, *trials.x), t["axis_deviation"], suffix=" %", most=9)
    panel = Panel(rows([case for case, _ in named]), marks, ROW * len(named))
    return Plot("spread", [Figure("", {"": Chart(across, [panel])})])


def _deviation(value: float, result: Result) -> float | None:
    return 100 * (value / result.throughput - 1) if result.throughput else None


def _trials(named: Sequence[tuple[str, Result]]) -> Dots:
    points = [(row, value, result) for row, (_, result) in enumerate(named) for value in result.trials]
    deviations = [_deviation(value, result) for _, value, result in points]
    texts = [
        f"{number.throughput(value)} {rate_unit(result.unit)} ({deviation or 0.0:+.2f} %)"
        for (_, value, result), deviation in zip(points, deviations, strict=True)
    ]
    return Dots(opacity=0.65, x=deviations, y=[row for row, _, _ in points], texts=texts, radius=4)


def _intervals(named: Sequence[tuple[str, Result]]) -> Whiskers:
    known = [(row, result, result.interval) for row, (_, result) in enumerate(named) if result.interval]
    return Whiskers(
        "band",
        at=[row for row, _, _ in known],
        low=[_deviation(interval.low, result) for _, result, interval in known],
        high=[_deviation(interval.high, result) for _, result, interval in known],
        flat=True,
        width=12,
    )


def _medians(named: Sequence[tuple[str, Result]], t: dict[str, str]) -> Dots:
    texts = [
        f"{t['median']} {number.throughput(r.throughput)} {number.interval(r.interval)}" for _, r in named
    ]
    places = range(len(named))
    return Dots("ink", x=[0] * len(named), y=list(places), texts=texts, shape="tick", radius=8)
