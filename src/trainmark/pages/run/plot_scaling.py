"""Plots over the number of devices: throughput, efficiency, speedup; and over an axis that a run varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmark.measure.comparison import ScalingSeries
from trainmark.measure.figure import Interval, Result
from trainmark.measure.key import Key
from trainmark.pages import label, number
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
from trainmark.workloads import registry

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


STRONG = "strong-"  # so that these do not answer to the legends of other plots


def speedup_plot(named: Sequence[tuple[str, ScalingSeries]]) -> Plot:
    marks = [mark for index, each in enumerate(named) for mark in _marks(*each, index)]
    devices = [point.result.key.devices for _name, series in named for point in series.points]
    views = linear_and_log(devices, marks, _("speedup"))
    return Plot("strong", [Figure("", views)], [name for name, _series in named])


def _marks(name: str, scaling: ScalingSeries, index: int) -> list[Mark]:
    series = f"{STRONG}{index}"
    devices = [point.result.key.devices for point in scaling.points]
    ratios = [point.speedup for point in scaling.points]
    texts = [f"{p.result.key.topology}: ×{number.ratio(p.speedup.value)}" for p in scaling.points]
    line = ideal(name, series, index, devices, [count / devices[0] for count in devices])
    values, intervals = [ratio.value for ratio in ratios], [ratio.interval for ratio in ratios]
    return [line, *measured(name, series, index, devices, values, intervals, texts)]


AXIS = "axis"
BATCH = "batch_per_device"
TITLES = {BATCH: _("batch per device"), "threads": _("threads")}


@dataclass(frozen=True)
class VariedAxis:
    """A field of the key that takes several numbers, and the results that differ in nothing else."""

    field: str
    series: dict[Key, list[Result]]


def varied_axis(results: Sequence[Result]) -> VariedAxis | None:
    """Return the first field with several values in some series: the batch, the workload's axes, threads.

    None where the number of devices varies, whose plot has a line for each value of the others. Only results
    in the unit of the first: tokens and sequences have no axis in common.
    """
    if any(group.scales for group in label.by_series(results)):
        return None
    results = [result for result in results if result.unit == results[0].unit]
    names = dict.fromkeys(name for result in results for name, _value in result.key.axes)
    for field in (BATCH, *names, "threads"):
        series: dict[Key, list[Result]] = {}
        for result in results:
            if isinstance(result.key.value(field), int):
                series.setdefault(_without(result.key, field), []).append(result)
        several = {key: own for key, own in series.items() if len({r.key.value(field) for r in own}) > 1}
        if several:
            return VariedAxis(field, several)
    return None


def axis_plot(varied: VariedAxis) -> Plot:
    names = label.distinguishing(varied.series)
    marks: list[Mark] = []
    legend = []
    for index, (key, own) in enumerate(varied.series.items()):
        ordered = sorted(own, key=lambda result: result.key.value(varied.field) or 0)
        name = _series_name(key, varied.field, names)
        legend.append(name)
        marks += measured(
            name,
            f"{AXIS}{index}",
            index,
            [result.key.value(varied.field) for result in ordered],
            [result.throughput for result in ordered],
            [result.interval for result in ordered],
            [_axis_text(result, varied.field) for result in ordered],
        )
    results = [result for own in varied.series.values() for result in own]
    values = [result.key.value(varied.field) for result in results]
    title, unit = axis_title(varied.field), label.rate_unit(results[0].unit)
    views: dict[str, Chart] = {
        LINEAR: Chart(counts(values, title), [Panel(linear(heights(marks), unit), marks)]),
        LOG_LOG: Chart(counts(values, title, log=True), [Panel(logarithmic(heights(marks), unit), marks)]),
    }
    return Plot(AXIS, [Figure("", views)], legend)


def axis_title(field: str) -> str:
    """Return the words for a field; an axis has the title that its workload declares."""
    declared = registry.axes().get(field)
    return TITLES.get(field) or (declared.title if declared else field.replace("_", " "))


def _without(key: Key, field: str) -> Key:
    if field in dict(key.axes):
        return replace(key, axes=tuple(pair for pair in key.axes if pair[0] != field))
    return replace(key, batch_per_device=None) if field == BATCH else replace(key, threads=None)


def _series_name(key: Key, field: str, names: Sequence[str]) -> str:
    batch = "" if field == BATCH else label.batch(key)
    parts = (label.framework(key), label.precision(key), batch, label.extras(key, names), key.topology)
    return " ".join(filter(None, parts))


def _axis_text(result: Result, field: str) -> str:
    interval = f" {number.interval(result.interval)}" if result.interval else ""
    rate = f"{number.throughput(result.throughput)} {label.rate_unit(result.unit)}{interval}"
    return _(
        "{axis} {value}: {rate}", axis=axis_title(field), value=f"{result.key.value(field):,}", rate=rate
    )
