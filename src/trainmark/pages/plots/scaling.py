"""Throughput and efficiency against the number of devices, one line a series."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Interval
from trainmark.pages import number
from trainmark.pages.label import Series, rate_unit
from trainmark.view.chart.axis import counts, linear, logarithmic
from trainmark.view.chart.model import (
    AT_FIRST,
    Chart,
    Dots,
    Figure,
    Line,
    Mark,
    Panel,
    Plot,
    Rule,
    Whiskers,
    shape,
    tone,
)
from trainmark.view.message import _

DEVICES, LINEAR, LOG_LOG, LOG = _("devices"), _("Linear"), _("Log–log"), _("Log")
THROUGHPUT_NOTE = _("Median of the trials with its interval; dashed: one device times the device count.")


def throughput(groups: Sequence[Series]) -> Plot | None:
    """None unless a series has two device counts: a single point does not scale.

    One axis has one unit, that of the first series; the legend also serves the efficiency, which all have.
    """
    drawn = [group for group in groups if group.scales]
    if not drawn:
        return None
    unit = drawn[0].results[0].unit
    marks = [
        mark
        for index, group in enumerate(drawn)
        if group.results[0].unit == unit
        for mark in throughput_marks(group, index)
    ]
    views = throughput_views(drawn, marks)
    return Plot("throughput", [Figure("", views)], [group.name for group in drawn])


def throughput_marks(group: Series, index: int, series: str = "") -> list[Mark]:
    """The throughput of a series with its intervals; `series` and `index` name it in the legend."""
    values = [result.throughput for result in group.results]
    intervals = [result.interval for result in group.results]
    texts = [
        f"{r.key.topology}: {number.throughput(r.throughput)} {rate_unit(r.unit)}"
        + (f" {number.interval(r.interval)}" if r.interval else "")
        for r in group.results
    ]
    devices = [result.key.devices for result in group.results]
    ideal = _ideal(group, index, series)
    return [*ideal, *measured(group.name, f"{series}{index}", index, devices, values, intervals, texts)]


def throughput_views(groups: Sequence[Series], marks: Sequence[Mark]) -> dict[str, Chart]:
    """A linear view and one that is logarithmic both ways."""
    devices = [result.key.devices for group in groups for result in group.results]
    title = rate_unit(groups[0].results[0].unit)
    return linear_and_log(devices, marks, title)


def linear_and_log(devices: Sequence[int], marks: Sequence[Mark], title: str) -> dict[str, Chart]:
    values = heights(marks)
    return {
        LINEAR: Chart(counts(devices, DEVICES), [Panel(linear(values, title), marks)]),
        LOG_LOG: Chart(counts(devices, DEVICES, log=True), [Panel(logarithmic(values, title), marks)]),
    }


def efficiency(groups: Sequence[Series]) -> Plot | None:
    drawn = [group for group in groups if group.scales]
    marks: list[Mark] = []
    for index, group in enumerate(drawn):
        known = [(result, result.efficiency) for result in group.results if result.efficiency]
        if not known:
            continue
        values = [100 * ratio.value for _, ratio in known]
        intervals = [_hundredfold(ratio.interval) for _, ratio in known]
        texts = [
            f"{result.key.topology}: {number.percent(ratio.value)}"
            + (f" {number.percent_interval(ratio.interval)}" if ratio.interval else "")
            for result, ratio in known
        ]
        devices = [result.key.devices for result, _ in known]
        marks += measured(group.name, str(index), index, devices, values, intervals, texts)
    if not marks:
        return None
    counted = [result.key.devices for group in drawn for result in group.results]
    # From zero: a cut axis makes a drop of a few per cent look like a collapse.
    panel = Panel(linear([*heights(marks), 100.0], suffix=" %"), [Rule("muted", y=100.0), *marks])
    views: dict[str, Chart] = {
        LINEAR: Chart(counts(counted, DEVICES), [panel]),
        LOG: Chart(counts(counted, DEVICES, log=True), [panel]),
    }
    return Plot("efficiency", [Figure("", views)])


def measured(
    name: str,
    series: str,
    index: int,
    devices: Sequence[int],
    values: Sequence[float],
    intervals: Sequence[Interval | None],
    texts: Sequence[str],
) -> list[Mark]:
    """A line through the medians, an interval and a dot at each."""
    shown = index < AT_FIRST
    low = [interval.low if interval else None for interval in intervals]
    high = [interval.high if interval else None for interval in intervals]
    return [
        Line(tone(index), series, shown, x=devices, y=values, name=name, width=2),
        Whiskers(tone(index), series, shown, at=devices, low=low, high=high),
        Dots(
            tone(index),
            series,
            shown,
            x=devices,
            y=values,
            texts=texts,
            name=name,
            shape=shape(index),
            radius=4,
        ),
    ]


def heights(marks: Sequence[Mark]) -> list[float | None]:
    """All values that the vertical axis must hold."""
    points = [value for mark in marks if isinstance(mark, (Line, Dots)) for value in mark.y]
    bounds = [value for mark in marks if isinstance(mark, Whiskers) for value in (*mark.low, *mark.high)]
    return [*points, *bounds]


def _ideal(group: Series, index: int, series: str) -> list[Mark]:
    """One device's throughput times the count; nothing where one device was not measured."""
    one = next((result for result in group.results if result.key.devices == 1), None)
    if one is None:
        return []
    devices = sorted({result.key.devices for result in group.results})
    values = [one.throughput * count for count in devices]
    return [ideal(group.name, f"{series}{index}", index, devices, values)]


def ideal(name: str, series: str, index: int, devices: Sequence[int], values: Sequence[float]) -> Line:
    shown, named = index < AT_FIRST, _("{name} (ideal)", name=name)
    return Line(tone(index), series, shown, 0.6, x=devices, y=values, name=named, width=1, dash=True)


def _hundredfold(interval: Interval | None) -> Interval | None:
    return interval and Interval(100 * interval.low, 100 * interval.high, interval.confidence)
