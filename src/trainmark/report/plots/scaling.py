"""Throughput and efficiency against the number of devices, one line a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.measure.figure import Interval
from trainmark.report.format import number
from trainmark.report.format.label import rate_unit
from trainmark.report.plots.plot import AT_FIRST, Figure, Plot, name, short, symbol, tone
from trainmark.report.sections.group import Group

HEIGHT = 340


def throughput(groups: Sequence[Group], t: dict[str, str]) -> Plot | None:
    """None unless a series has two device counts: a single point does not scale."""
    drawn = [group for group in groups if group.scales]
    if not drawn:
        return None
    data: list[dict[str, Any]] = []
    for index, group in enumerate(drawn):
        if line := ideal(group, index, t):
            data.append(line)
        data.append(measured(group, index))
    figure = Figure("", data, throughput_layout(drawn, t), throughput_views(t))
    return Plot("throughput", HEIGHT, [figure], [group.name for group in drawn])


def measured(group: Group, index: int, series: str = "") -> dict[str, Any]:
    """The throughput of a series with its intervals; `series` and `index` name it in the legend."""
    values = [result.throughput for result in group.results]
    hover = [number.throughput(value) for value in values]
    return _line(group, index, values, [result.interval for result in group.results], hover, series)


def throughput_layout(groups: Sequence[Group], t: dict[str, str]) -> dict[str, Any]:
    unit = rate_unit(groups[0].results[0].unit)
    return _layout(groups, t, {"title": {"text": name(unit)}, "rangemode": "tozero", "tickformat": ",~r"})


def throughput_views(t: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {
        t["linear"]: {"xaxis": {"type": "linear"}, "yaxis": {"type": "linear"}},
        t["log_log"]: {
            "xaxis": {"type": "log"},
            "yaxis": {"type": "log", "rangemode": "normal", "dtick": "D2"},
        },
    }


def efficiency(groups: Sequence[Group], t: dict[str, str]) -> Plot | None:
    drawn = [group for group in groups if group.scales]
    data: list[dict[str, Any]] = []
    for index, group in enumerate(drawn):
        known = [(result, result.efficiency) for result in group.results if result.efficiency]
        if not known:
            continue
        values = [100 * ratio.value for _, ratio in known]
        intervals = [_hundredfold(ratio.interval) for _, ratio in known]
        hover = [number.percent(ratio.value) for _, ratio in known]
        only = Group(group.name, group.key, tuple(result for result, _ in known))
        data.append(_line(only, index, values, intervals, hover))
    if not data:
        return None
    full = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 100, "y1": 100, "layer": "below"}
    layout = _layout(drawn, t, {"ticksuffix": " %", "range": _percent_range(data)})
    layout["shapes"] = [{**full, "line": {"color": "--muted", "width": 1, "dash": "dot"}}]
    views = {
        t["linear"]: {"xaxis": {"type": "linear"}},
        t["log"]: {"xaxis": {"type": "log"}},
    }
    return Plot("efficiency", HEIGHT, [Figure("", data, layout, views)], [])


def _percent_range(data: Sequence[dict[str, Any]]) -> list[float]:
    """From zero: a cut axis makes a drop of a few per cent look like a collapse."""
    values = [value for trace in data for value in trace["y"] if value is not None] or [100.0]
    return [0, max(105.0, max(values) * 1.05)]


def _layout(groups: Sequence[Group], t: dict[str, str], yaxis: dict[str, Any]) -> dict[str, Any]:
    counts = sorted({result.key.devices for group in groups for result in group.results})
    ticks = {"tickmode": "array", "tickvals": counts, "ticktext": list(map(str, counts))}
    return {"xaxis": {"title": {"text": t["axis_devices"]}, **ticks}, "yaxis": yaxis}


def _line(
    group: Group,
    index: int,
    values: list[float],
    intervals: list[Interval | None],
    hover: list[str],
    series: str = "",
) -> dict[str, Any]:
    above = [short(i.high - v) if i else 0 for v, i in zip(values, intervals, strict=True)]
    below = [short(v - i.low) if i else 0 for v, i in zip(values, intervals, strict=True)]
    texts = [f"{r.key.topology}: {text}" for r, text in zip(group.results, hover, strict=True)]
    return {
        **_trace(name(group.name), index, [result.key.devices for result in group.results], values, series),
        "mode": "lines+markers",
        "line": {"color": tone(index), "width": 2},
        "marker": {"color": tone(index), "size": 6, "symbol": symbol(index)},
        "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 0}
        | {"color": tone(index), "thickness": 2},
        "text": texts,
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }


def ideal(group: Group, index: int, t: dict[str, str], series: str = "") -> dict[str, Any] | None:
    """One device's throughput times the count; None where one device was not measured."""
    one = next((result for result in group.results if result.key.devices == 1), None)
    if one is None:
        return None
    counts = sorted({result.key.devices for result in group.results})
    values = [one.throughput * count for count in counts]
    return {
        **_trace(f"{name(group.name)} ({t['ideal']})", index, counts, values, series),
        "mode": "lines",
        "line": {"color": tone(index), "width": 1, "dash": "dash"},
        "opacity": 0.6,
        "hoverinfo": "skip",
    }


def _trace(title: str, index: int, x: list[int], y: list[float], series: str) -> dict[str, Any]:
    shown: bool | str = True if index < AT_FIRST else "legendonly"
    values = [short(value) for value in y]
    return {
        "type": "scatter",
        "name": title,
        "legendgroup": f"{series}{index}",
        "visible": shown,
        "x": x,
        "y": values,
    }


def _hundredfold(interval: Interval | None) -> Interval | None:
    return interval and Interval(100 * interval.low, 100 * interval.high, interval.confidence)
