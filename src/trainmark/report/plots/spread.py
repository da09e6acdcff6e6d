"""Every trial as a dot beside its case's median, so that cases of any speed share one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.measure.figure import Result
from trainmark.report.format import number
from trainmark.report.format.label import rate_unit
from trainmark.report.plots.plot import Figure, Plot, name, short
from trainmark.report.sections.group import Group

ROW = 30
FRAME = 76


def plot(groups: Sequence[Group], t: dict[str, str]) -> Plot | None:
    rows = [(f"{group.name} {result.key.topology}", result) for group in groups for result in group.results]
    if not rows:
        return None
    data = [_intervals(rows), _trials(rows), _medians(rows, t)]
    layout = {
        "xaxis": {"title": {"text": t["axis_deviation"]}, "zeroline": True, "ticksuffix": " %"},
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(rows))),
            "ticktext": [name(case) for case, _ in rows],
            "range": [len(rows) - 0.5, -0.5],
            "showgrid": False,
            "fixedrange": True,
        },
    }
    return Plot("spread", FRAME + ROW * len(rows), [Figure("", data, layout, {})], [])


def _deviation(value: float, result: Result) -> float | None:
    return short(100 * (value / result.throughput - 1)) if result.throughput else None


def _trials(rows: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    points = [(row, value, result) for row, (_, result) in enumerate(rows) for value in result.trials]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [_deviation(value, result) for _, value, result in points],
        "y": [row for row, _, _ in points],
        "text": [f"{number.throughput(value)} {name(rate_unit(result.unit))}" for _, value, result in points],
        "marker": {"color": "--tone-0", "size": 8, "opacity": 0.65},
        "hovertemplate": "%{text} (%{x:+.2f} %)<extra></extra>",
    }


def _intervals(rows: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    """One thick line with a gap after each interval."""
    x: list[float | None] = []
    y: list[int | None] = []
    for row, (_, result) in enumerate(rows):
        if result.interval:
            x += [_deviation(result.interval.low, result), _deviation(result.interval.high, result), None]
            y += [row, row, None]
    line = {"color": "--band", "width": 12}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def _medians(rows: Sequence[tuple[str, Result]], t: dict[str, str]) -> dict[str, Any]:
    texts = [
        f"{t['median']} {number.throughput(r.throughput)} {number.interval(r.interval)}" for _, r in rows
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [0] * len(rows),
        "y": list(range(len(rows))),
        "text": texts,
        "marker": {
            "symbol": "line-ns-open",
            "size": 16,
            "color": "--ink",
            "line": {"width": 2, "color": "--ink"},
        },
        "hovertemplate": "%{text}<extra></extra>",
    }
