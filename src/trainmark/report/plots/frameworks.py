"""Frameworks side by side at each topology, and how each of them scales; one figure a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.measure.figure import Result
from trainmark.report.format import label, number
from trainmark.report.plots import scaling as lines
from trainmark.report.plots.plot import AT_FIRST, Figure, Plot, name, short, tone
from trainmark.report.sections.frameworks import FrameworkTable
from trainmark.report.sections.group import Group, by_series

HEIGHT = 340
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
    figures = [Figure(_label(table, tables), _bars(table, legend), _layout(table, t), {}) for table in tables]
    return Plot("framework_bars", HEIGHT, figures, legend)


def scaling(tables: Sequence[FrameworkTable], t: dict[str, str]) -> Plot | None:
    """None unless some framework has two device counts."""
    legend = names(tables)
    figures = []
    for table in tables:
        groups = [group for group in _series(table, legend) if group.scales]
        data: list[dict[str, Any]] = []
        for group in groups:
            index = legend.index(label.framework(group.key))
            if ideal := lines.ideal(group, index, t, SERIES):
                data.append(ideal)
            data.append(lines.measured(group, index, SERIES))
        if data:
            layout, views = lines.throughput_layout(groups, t), lines.throughput_views(t)
            figures.append(Figure(_label(table, tables), data, layout, views))
    return Plot("framework_scaling", HEIGHT, figures, []) if figures else None


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


def _bars(table: FrameworkTable, legend: Sequence[str]) -> list[dict[str, Any]]:
    seen: set[int] = set()
    data = []
    for group in _series(table, legend):
        index = legend.index(label.framework(group.key))
        data.append(_bar(group, index, paler=index in seen))
        seen.add(index)
    return data


def _bar(group: Group, index: int, paler: bool) -> dict[str, Any]:
    results = group.results
    above = [short(r.interval.high - r.throughput) if r.interval else 0 for r in results]
    below = [short(r.throughput - r.interval.low) if r.interval else 0 for r in results]
    unit = name(label.rate_unit(results[0].unit))
    return {
        "type": "bar",
        "name": name(group.name),
        "legendgroup": f"{SERIES}{index}",
        "visible": True if index < AT_FIRST else "legendonly",
        "x": [r.key.topology for r in results],
        "y": [short(r.throughput) for r in results],
        "marker": {"color": tone(index), "opacity": PALER if paler else 1, "line": {"width": 0}},
        "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 3}
        | {"color": "--ink", "thickness": 1.25},
        "text": [f"{number.throughput(r.throughput)} {unit} {number.interval(r.interval)}" for r in results],
        "textposition": "none",
        "hovertemplate": "%{x}: %{text}<extra>%{fullData.name}</extra>",
    }


def _layout(table: FrameworkTable, t: dict[str, str]) -> dict[str, Any]:
    topologies = list(dict.fromkeys(row.result.key.topology for row in table.rows))
    return {
        "barmode": "group",
        "bargap": 0.22,
        "bargroupgap": 0.08,
        "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": topologies}
        | {"title": {"text": t["placed"]}, "showgrid": False, "fixedrange": True},
        "yaxis": {"title": {"text": name(table.unit)}, "rangemode": "tozero", "tickformat": ",~r"},
    }
