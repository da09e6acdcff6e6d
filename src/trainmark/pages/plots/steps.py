"""Step times of one trial, the steps that do not count shaded."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.pages import number
from trainmark.store.series import StepTrace
from trainmark.view.chart.axis import Axis, linear, logarithmic
from trainmark.view.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Shade
from trainmark.view.message import _

NOTE = _("The median trial of a case. The shaded steps are outside the window and do not count.")
STEP = _("step")
AIR = 0.15
# Stretches into which all lines of the plot are thinned together, and those of one at most and at least.
BUCKETS = 6_000
MOST, LEAST = 400, 80


def plot(traces: Sequence[StepTrace]) -> Plot | None:
    """One figure a case, chosen on the page."""
    known = [trace for trace in traces if trace.seconds]
    buckets = min(MOST, max(LEAST, BUCKETS // max(1, len(known))))
    return Plot("steps", [_figure(trace, buckets) for trace in known]) if known else None


def _figure(trace: StepTrace, buckets: int) -> Figure:
    inside = [s for step, s in zip(trace.steps, trace.seconds, strict=True) if _counts(trace, step)]
    outside = [s for step, s in zip(trace.steps, trace.seconds, strict=True) if not _counts(trace, step)]
    milliseconds = [1000 * second for second in trace.seconds]
    tip = _("step {x}: {y} ms", x="{x}", y="{y}")
    marks: list[Mark] = [Shade("shade", start=start, stop=stop) for start, stop in _uncounted(trace)]
    if len(trace.steps) > 1:
        marks.append(Line(x=trace.steps, y=milliseconds, width=1.25, tip=tip, buckets=buckets))
    else:
        text = _("step {x}: {y} ms", x=trace.steps[0], y=f"{milliseconds[0]:.4g}")
        marks.append(Dots(x=trace.steps, y=milliseconds, texts=[text]))
    top, bounds = _window_range(inside or list(trace.seconds))
    # The first step often takes a hundred times the others; on its scale those would be one flat line.
    hidden = bool(outside) and max(outside) > top
    note = _("↑ up to {longest} outside the window", longest=number.duration(max(outside))) if hidden else ""
    title = _("step time (ms)")
    return Figure(
        trace.case,
        {
            _("Window"): _chart(trace, marks, linear([], title, bounds=bounds), note),
            _("Everything"): _chart(trace, marks, logarithmic(milliseconds, title)),
        },
    )


def _chart(trace: StepTrace, marks: Sequence[Mark], y: Axis, note: str = "") -> Chart:
    ends = (float(trace.steps[0]), float(max(trace.steps[-1], trace.steps[0] + 1)))
    return Chart(linear([], STEP, bounds=ends, most=11), [Panel(y, marks, note=note)])


def _counts(trace: StepTrace, step: int) -> bool:
    return trace.window_first <= step < trace.window_stop


def _window_range(seconds: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """The seconds at the top of the plot, and the axis in milliseconds."""
    low, high = min(seconds), max(seconds)
    air = (high - low or high) * AIR
    return high + air, (1000 * max(0.0, low - air), 1000 * (high + air))


def _uncounted(trace: StepTrace) -> list[tuple[int, int]]:
    first, last = trace.steps[0], trace.steps[-1]
    ends = [(first, trace.window_first), (trace.window_stop, last)]
    return [(start, stop) for start, stop in ends if stop > start]
