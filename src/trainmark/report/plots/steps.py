"""Step times of one trial, the steps that do not count shaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.report.document import StepTrace
from trainmark.report.format import number
from trainmark.report.plots.plot import Figure, Plot, short

HEIGHT = 320
AIR = 0.15


def plot(traces: Sequence[StepTrace], t: dict[str, str]) -> Plot | None:
    """One figure a case, chosen on the page."""
    figures = [_figure(trace, t) for trace in traces if trace.seconds]
    return Plot("steps", HEIGHT, figures, []) if figures else None


def _figure(trace: StepTrace, t: dict[str, str]) -> Figure:
    inside = [s for step, s in zip(trace.steps, trace.seconds, strict=True) if _counts(trace, step)]
    outside = [s for step, s in zip(trace.steps, trace.seconds, strict=True) if not _counts(trace, step)]
    points = {
        "type": "scatter",
        "mode": "lines" if len(trace.steps) > 1 else "markers",
        "x": list(trace.steps),
        "y": [short(1000 * second) for second in trace.seconds],
        "line": {"color": "--tone-0", "width": 1.25},
        "marker": {"color": "--tone-0"},
        "hovertemplate": f"{t['axis_step']} %{{x}}: %{{y:.4~g}} ms<extra></extra>",
    }
    top, range_ = _window_range(inside or list(trace.seconds))
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": t["axis_step"]}},
        "yaxis": {"title": {"text": t["axis_step_time"]}},
        "shapes": [_shade(start, stop) for start, stop in _uncounted(trace)],
        "annotations": [],
    }
    focused: dict[str, Any] = {"yaxis": {"range": range_}}
    # The first step often takes a hundred times the others; on its scale those would be one flat line.
    if outside and max(outside) > top:
        text = "↑ " + t["off_scale"].format(longest=number.duration(max(outside)))
        focused["annotations"] = [
            {"text": text, "xref": "paper", "yref": "paper", "x": 0.01, "y": 0.99, "xanchor": "left"}
            | {"yanchor": "top", "showarrow": False, "bgcolor": "--page"}
        ]
    views = {t["window"]: focused, t["everything"]: {"yaxis": {"type": "log", "dtick": "D2"}}}
    return Figure(trace.case, [points], layout, views)


def _counts(trace: StepTrace, step: int) -> bool:
    return trace.window_first <= step < trace.window_stop


def _window_range(seconds: Sequence[float]) -> tuple[float, list[float | None]]:
    """The seconds at the top of the plot, and the axis in milliseconds."""
    low, high = min(seconds), max(seconds)
    air = (high - low or high) * AIR
    return high + air, [short(1000 * max(0.0, low - air)), short(1000 * (high + air))]


def _uncounted(trace: StepTrace) -> list[tuple[int, int]]:
    first, last = trace.steps[0], trace.steps[-1]
    ends = [(first, trace.window_first), (trace.window_stop, last)]
    return [(start, stop) for start, stop in ends if stop > start]


def _shade(start: int, stop: int) -> dict[str, Any]:
    place = {"type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": stop, "y0": 0, "y1": 1}
    return {**place, "fillcolor": "--shade", "line": {"width": 0}, "layer": "below"}
