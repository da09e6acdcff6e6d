"""Frameworks side by side at each topology, and how each of them scales; one figure a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.report.plots import scaling as lines
from trainmark.report.sections.frameworks import FrameworkTable
from trainmark.report.sections.group import Group, by_series
from trainmark.view.chart.axis import columns, linear
from trainmark.view.chart.model import AT_FIRST, Bars, Chart, Figure, Mark, Panel, Plot, Whiskers, tone

# Share of a topology's place that its bars fill.
ROOM = 0.8
# Tells the legend of this section from that of all series.
SERIES = "framework-"
# A second series of the same framework, in another layout or version, has its colour but paler.
PALER = 0.55


def names(tables: Sequence[FrameworkTable]) -> list[str]:
    """All frameworks of all cases, the fastest of the first first; each keeps its colour in all figures."""
    ranked: dict[str, None] = {}
    for table in tables:
        fastest = sorted(table.rows, key=lambda row: -row.result.throughput)
        ranked |= {row.name: None for row in fastest if row.name not in ranked}
    return list(ranked)


def bars(tables: Sequence[FrameworkTable], t: dict[str, str]) -> Plot | None:
    if not tables:
        return None
    legend = names(tables)
    figures = [Figure(_label(table, tables), {"": _bars(table, legend, t)}) for table in tables]
    return Plot("framework_bars", figures, legend)


def scaling(tables: Sequence[FrameworkTable], t: dict[str, str]) -> Plot | None:
    """None unless some framework has two device counts."""
    legend = names(tables)
    figures = []
    for table in tables:
        groups = [group for group in _series(table, legend) if group.scales]
        marks = [
            mark
            for group in groups
            for mark in lines.throughput_marks(group, legend.index(label.framework(group.key)), t, SERIES)
        ]
        if marks:
            figures.append(Figure(_label(table, tables), lines.throughput_views(groups, marks, t)))
    return Plot("framework_scaling", figures) if figures else None


def _label(table: FrameworkTable, tables: Sequence[FrameworkTable]) -> str:
    """A name to choose by, where there is a choice."""
    return table.name if len(tables) > 1 else ""


def _series(table: FrameworkTable, legend: Sequence[str]) -> list[Group]:
    """By framework, version and layout; a name says of these only what tells two series apart."""
    results = sorted((row.result for row in table.rows), key=lambda r: legend.index(label.framework(r.key)))
    groups = by_series(results)
    several = {
        framework
        for framework in table.frameworks
        if sum(label.framework(group.key) == framework for group in groups) > 1
    }
    return [Group(_series_name(group.results[0], several), group.key, group.results) for group in groups]


def _series_name(result: Result, several: set[str]) -> str:
    framework = label.framework(result.key)
    if framework not in several:
        return framework
    return " ".join(filter(None, (framework, result.key.framework_version, result.key.layout)))


def _bars(table: FrameworkTable, legend: Sequence[str], t: dict[str, str]) -> Chart:
    groups = _series(table, legend)
    topologies = list(dict.fromkeys(row.result.key.topology for row in table.rows))
    seen: set[int] = set()
    marks: list[Mark] = []
    for place, group in enumerate(groups):
        index = legend.index(label.framework(group.key))
        offset = ROOM * ((place + 0.5) / len(groups) - 0.5)
        at = [topologies.index(result.key.topology) + offset for result in group.results]
        marks += _bar(group, index, at, 0.9 * ROOM / len(groups), paler=index in seen)
        seen.add(index)
    tops = [value for mark in marks if isinstance(mark, Bars) for value in mark.y] + lines.heights(marks)
    return Chart(replace(columns(topologies), title=t["placed"]), [Panel(linear(tops, table.unit), marks)])


def _bar(group: Group, index: int, at: Sequence[float], width: float, paler: bool) -> list[Mark]:
    results, series, shown = group.results, f"{SERIES}{index}", index < AT_FIRST
    texts = [
        f"{r.key.topology}: {number.throughput(r.throughput)} {label.rate_unit(r.unit)}"
        f" {number.interval(r.interval)}"
        for r in results
    ]
    low = [r.interval.low if r.interval else None for r in results]
    high = [r.interval.high if r.interval else None for r in results]
    return [
        Bars(
            tone(index),
            series,
            shown,
            PALER if paler else 1.0,
            x=at,
            y=[r.throughput for r in results],
            texts=texts,
            name=group.name,
            width=width,
        ),
        Whiskers("ink", series, shown, at=at, low=low, high=high, width=1.25),
    ]
