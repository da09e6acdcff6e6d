"""Speed-up of the strong series against the number of devices, with the line that would be linear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.measure.result.scaling import Kind, Point
from trainmark.report.format import number
from trainmark.report.plots.plot import AT_FIRST, Figure, Plot, name, short, symbol, tone
from trainmark.report.sections.scaling import ScalingTable

HEIGHT = 340
SERIES = "strong-"  # so that these do not answer to the legends of other plots


def plot(tables: Sequence[ScalingTable], t: dict[str, str]) -> Plot | None:
    drawn = [table for table in tables if table.series.kind is Kind.STRONG]
    if not drawn:
        return None
    data = [trace for index, table in enumerate(drawn) for trace in _traces(table, index, t)]
    counts = sorted({point.result.key.devices for table in drawn for point in table.points})
    ticks = {"tickmode": "array", "tickvals": counts, "ticktext": list(map(str, counts))}
    layout = {
        "xaxis": {"title": {"text": t["axis_devices"]}, **ticks},
        "yaxis": {"title": {"text": t["speedup"]}, "rangemode": "tozero"},
    }
    views: dict[str, dict[str, Any]] = {
        t["linear"]: {"xaxis": {"type": "linear"}, "yaxis": {"type": "linear"}},
        t["log_log"]: {
            "xaxis": {"type": "log"},
            "yaxis": {"type": "log", "rangemode": "normal", "dtick": "D2"},
        },
    }
    return Plot("strong", HEIGHT, [Figure("", data, layout, views)], [table.name for table in drawn])


def _traces(table: ScalingTable, index: int, t: dict[str, str]) -> list[dict[str, Any]]:
    devices = [point.result.key.devices for point in table.points]
    shared = {
        "type": "scatter",
        "legendgroup": f"{SERIES}{index}",
        "visible": True if index < AT_FIRST else "legendonly",
        "x": devices,
    }
    linear = {
        **shared,
        "name": f"{name(table.name)} ({t['ideal']})",
        "mode": "lines",
        "y": [short(count / devices[0]) for count in devices],
        "line": {"color": tone(index), "width": 1, "dash": "dash"},
        "opacity": 0.6,
        "hoverinfo": "skip",
    }
    measured = {
        **shared,
        "name": name(table.name),
        "mode": "lines+markers",
        "y": [short(point.speedup.value) for point in table.points],
        "line": {"color": tone(index), "width": 2},
        "marker": {"color": tone(index), "size": 6, "symbol": symbol(index)},
        "error_y": {"type": "data", "symmetric": False, "width": 0, "color": tone(index), "thickness": 2}
        | {"array": [_reach(point, up=True) for point in table.points]}
        | {"arrayminus": [_reach(point, up=False) for point in table.points]},
        "text": [f"{p.result.key.topology}: ×{number.ratio(p.speedup.value)}" for p in table.points],
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }
    return [linear, measured]


def _reach(point: Point, up: bool) -> float | None:
    value, bounds = point.speedup.value, point.speedup.interval
    if bounds is None:
        return 0
    return short(bounds.high - value if up else value - bounds.low)
