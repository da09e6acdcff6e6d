"""Throughput against the batch, an axis of the workload or the threads, where a run varies one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.pages import label, number
from trainmark.pages.plots.scaling import LINEAR, LOG_LOG, heights, measured
from trainmark.view.chart.axis import counts, linear, logarithmic
from trainmark.view.chart.model import Chart, Figure, Mark, Panel, Plot
from trainmark.view.message import _
from trainmark.workloads import registry

SERIES = "axis"
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


def plot(varied: VariedAxis) -> Plot:
    names = label.distinguishing(varied.series)
    marks: list[Mark] = []
    legend = []
    for index, (key, own) in enumerate(varied.series.items()):
        ordered = sorted(own, key=lambda result: result.key.value(varied.field) or 0)
        name = _name(key, varied.field, names)
        legend.append(name)
        marks += measured(
            name,
            f"{SERIES}{index}",
            index,
            [result.key.value(varied.field) for result in ordered],
            [result.throughput for result in ordered],
            [result.interval for result in ordered],
            [_text(result, varied.field) for result in ordered],
        )
    results = [result for own in varied.series.values() for result in own]
    values = [result.key.value(varied.field) for result in results]
    title, unit = axis_title(varied.field), label.rate_unit(results[0].unit)
    views: dict[str, Chart] = {
        LINEAR: Chart(counts(values, title), [Panel(linear(heights(marks), unit), marks)]),
        LOG_LOG: Chart(counts(values, title, log=True), [Panel(logarithmic(heights(marks), unit), marks)]),
    }
    return Plot(SERIES, [Figure("", views)], legend)


def axis_title(field: str) -> str:
    """Return the words for a field; an axis has the title that its workload declares."""
    declared = registry.axes().get(field)
    return TITLES.get(field) or (declared.title if declared else field.replace("_", " "))


def _without(key: Key, field: str) -> Key:
    if field in dict(key.axes):
        return replace(key, axes=tuple(pair for pair in key.axes if pair[0] != field))
    return replace(key, batch_per_device=None) if field == BATCH else replace(key, threads=None)


def _name(key: Key, field: str, names: Sequence[str]) -> str:
    batch = "" if field == BATCH else label.batch(key)
    parts = (label.framework(key), label.precision(key), batch, label.extras(key, names), key.topology)
    return " ".join(filter(None, parts))


def _text(result: Result, field: str) -> str:
    interval = f" {number.interval(result.interval)}" if result.interval else ""
    rate = f"{number.throughput(result.throughput)} {label.rate_unit(result.unit)}{interval}"
    return _(
        "{axis} {value}: {rate}", axis=axis_title(field), value=f"{result.key.value(field):,}", rate=rate
    )
