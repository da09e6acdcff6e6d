"""Frameworks side by side at each topology, and how each of them scales; one figure a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.pages.label import Series, by_series
from trainmark.pages.run import plot_scaling as lines
from trainmark.view.chart.axis import columns, linear
from trainmark.view.chart.model import AT_FIRST, Bars, Chart, Figure, Mark, Panel, Plot, Whiskers, tone
from trainmark.view.message import _

# Share of a topology's place that its bars fill.
ROOM = 0.8
# Tells the legend of this section from that of all series.
SERIES = "framework-"
# A second series of the same framework, in another layout or version, has its colour but paler.
PALER = 0.55


# One case in several frameworks: its name, the unit of its rates, and the results.
Compared = tuple[str, str, Sequence[Result]]


def ranked_names(cases: Iterable[Sequence[Result]]) -> list[str]:
    """All frameworks of all cases, the fastest of the first first; each keeps its colour in all figures."""
    ranked: dict[str, None] = {}
    for results in cases:
        ranked |= {
            name: None
            for result in sorted(results, key=lambda result: -result.throughput)
            if (name := label.framework(result.key)) not in ranked
        }
    return list(ranked)


def bars(cases: Sequence[Compared], legend: Sequence[str]) -> Plot:
    figures = [
        Figure(_label(name, cases), {"": _bars(unit, results, legend)}) for name, unit, results in cases
    ]
    return Plot("framework_bars", figures, legend)


def scaling(cases: Sequence[Compared], legend: Sequence[str]) -> Plot | None:
    """None unless some framework has two device counts."""
    figures = []
    for name, _unit, results in cases:
        groups = [group for group in _series(results, legend) if group.scales]
        marks = [
            mark
            for group in groups
            for mark in lines.throughput_marks(group, legend.index(label.framework(group.key)), SERIES)
        ]
        if marks:
            figures.append(Figure(_label(name, cases), lines.throughput_views(groups, marks)))
    return Plot("framework_scaling", figures) if figures else None


def _label(name: str, cases: Sequence[Compared]) -> str:
    """A name to choose by, where there is a choice."""
    return name if len(cases) > 1 else ""


def _series(results: Sequence[Result], legend: Sequence[str]) -> list[Series]:
    """By framework, version and layout; a name says of these only what tells two series apart."""
    groups = by_series(sorted(results, key=lambda result: legend.index(label.framework(result.key))))
    counts = Counter(label.framework(group.key) for group in groups)
    several = {framework for framework, count in counts.items() if count > 1}
    return [Series(_series_name(group.results[0], several), group.key, group.results) for group in groups]


def _series_name(result: Result, several: set[str]) -> str:
    framework = label.framework(result.key)
    if framework not in several:
        return framework
    return " ".join(filter(None, (framework, result.key.framework_version, result.key.layout)))


def _bars(unit: str, results: Sequence[Result], legend: Sequence[str]) -> Chart:
    groups = _series(results, legend)
    topologies = list(dict.fromkeys(result.key.topology for result in results))
    seen: set[int] = set()
    marks: list[Mark] = []
    for place, group in enumerate(groups):
        index = legend.index(label.framework(group.key))
        offset = ROOM * ((place + 0.5) / len(groups) - 0.5)
        at = [topologies.index(result.key.topology) + offset for result in group.results]
        marks += _bar(group, index, at, 0.9 * ROOM / len(groups), paler=index in seen)
        seen.add(index)
    tops = [value for mark in marks if isinstance(mark, Bars) for value in mark.y] + lines.heights(marks)
    return Chart(replace(columns(topologies), title=_("topology")), [Panel(linear(tops, unit), marks)])


def _bar(group: Series, index: int, at: Sequence[float], width: float, paler: bool) -> list[Mark]:
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
