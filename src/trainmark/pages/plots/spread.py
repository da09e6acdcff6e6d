"""Every trial as a dot beside its case's median, so that cases of any speed share one scale."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Result
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Chart, Dots, Figure, Panel, Plot, Whiskers
from trainmark.view.message import _

NOTE = _("Each dot is one trial, relative to its case's median; the bar is the interval of the median.")
ROW = 34


def plot(named: Sequence[tuple[str, Result]]) -> Plot | None:
    if not named:
        return None
    intervals, trials = _intervals(named), _trials(named)
    marks = [intervals, trials, _medians(named)]
    across = linear(
        (*intervals.low, *intervals.high, *trials.x), _("deviation from the median (%)"), suffix=" %", most=9
    )
    panel = Panel(rows([case for case, _result in named]), marks, ROW * len(named))
    return Plot("spread", [Figure("", {"": Chart(across, [panel])})])


def _deviation(value: float, result: Result) -> float | None:
    return 100 * (value / result.throughput - 1) if result.throughput else None


def _trials(named: Sequence[tuple[str, Result]]) -> Dots:
    points = [(row, value, result) for row, (_case, result) in enumerate(named) for value in result.trials]
    deviations = [_deviation(value, result) for _row, value, result in points]
    texts = [
        f"{number.throughput(value)} {rate_unit(result.unit)} ({deviation or 0.0:+.2f} %)"
        for (_row, value, result), deviation in zip(points, deviations, strict=True)
    ]
    return Dots(opacity=0.65, x=deviations, y=[row for row, _value, _result in points], texts=texts, radius=4)


def _intervals(named: Sequence[tuple[str, Result]]) -> Whiskers:
    known = [(row, result, result.interval) for row, (_case, result) in enumerate(named) if result.interval]
    return Whiskers(
        "band",
        at=[row for row, _result, _interval in known],
        low=[_deviation(interval.low, result) for _row, result, interval in known],
        high=[_deviation(interval.high, result) for _row, result, interval in known],
        flat=True,
        width=12,
    )


def _medians(named: Sequence[tuple[str, Result]]) -> Dots:
    texts = [
        _(
            "median {rate} {interval}",
            rate=number.throughput(r.throughput),
            interval=number.interval(r.interval),
        )
        for _case, r in named
    ]
    places = range(len(named))
    return Dots("ink", x=[0] * len(named), y=list(places), texts=texts, shape="tick", radius=8)
