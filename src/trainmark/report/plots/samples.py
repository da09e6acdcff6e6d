"""What the devices said of themselves during a trial: one panel a quantity, one line a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.report.document import SampleSeries
from trainmark.report.format.number import GIB
from trainmark.report.plots.plot import Figure, Plot, name, short, tone

PANEL = 104
FRAME = 60
GAP_PIXELS = 34
# Field, its word, and what its numbers are multiplied by to stand in the unit of that word.
QUANTITIES = (
    ("utilisation", "utilisation", 100.0),
    ("power_watts", "power", 1.0),
    ("temperature_c", "temperature", 1.0),
    ("clock_mhz", "clock", 1.0),
    ("memory_bytes", "memory_used", 1 / GIB),
)


def plot(samples: Sequence[SampleSeries], t: dict[str, str]) -> Plot | None:
    """One figure a case, chosen on the page; a quantity no device reports has no panel."""
    cases: dict[str, list[SampleSeries]] = {}
    for series in samples:
        cases.setdefault(series.case, []).append(series)
    panels = [(field, t[word], scale) for field, word, scale in QUANTITIES if _reported(samples, field)]
    if not panels:
        return None
    height = FRAME + len(panels) * (PANEL + GAP_PIXELS)
    figures = [_figure(case, devices, panels, t, height) for case, devices in cases.items()]
    return Plot("samples", height, figures, [])


def _reported(samples: Sequence[SampleSeries], field: str) -> bool:
    return any(value is not None for series in samples for value in getattr(series, field))


def _figure(
    case: str,
    devices: Sequence[SampleSeries],
    panels: Sequence[tuple[str, str, float]],
    t: dict[str, str],
    height: int,
) -> Figure:
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": []}
    gap = GAP_PIXELS / (height - FRAME)
    share = 1 / len(panels)
    for row, (field, title, scale) in enumerate(panels):
        axis = "" if row == 0 else str(row + 1)
        top = 1 - row * share
        layout[f"yaxis{axis}"] = {"domain": [top - share, top - gap], "rangemode": "tozero", "nticks": 4}
        layout["annotations"].append(
            {"text": title, "xref": "paper", "yref": "paper", "x": 0, "y": top - gap, "showarrow": False}
            | {"xanchor": "left", "yanchor": "bottom", "font": {"size": 12, "color": "--muted"}}
        )
        for index, series in enumerate(devices):
            values = [None if value is None else value * scale for value in getattr(series, field)]
            data.append(_line(series, index, values, f"y{axis}"))
    layout["xaxis"] = {
        "title": {"text": t["axis_seconds"]},
        "anchor": f"y{len(panels)}" if len(panels) > 1 else "y",
    }
    return Figure(case, data, layout, {})


def _line(series: SampleSeries, index: int, values: list[float | None], axis: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name(series.device),
        "x": [short(second) for second in series.seconds],
        "y": [short(value) for value in values],
        "xaxis": "x",
        "yaxis": axis,
        "line": {"color": tone(index), "width": 1.25},
        "hovertemplate": "%{y:.4~g}<extra>%{fullData.name}</extra>",
    }
