"""Plots of trials: their spread around the median, the steps of one, and what its devices said."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.events.schema import is_host
from trainmark.measure.figure import Result
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.pages.number import GIB
from trainmark.store.series import SampleSeries, StepTrace
from trainmark.view.chart.axis import Axis, linear, logarithmic, rows
from trainmark.view.chart.model import (
    TONES,
    Chart,
    Dots,
    Figure,
    Line,
    Mark,
    Panel,
    Plot,
    Shade,
    Whiskers,
    tone,
)
from trainmark.view.message import _

SPREAD_NOTE = _(
    "Each dot is one trial, relative to its case's median; the bar is the interval of the median."
)
ROW = 34


def spread_plot(named: Sequence[tuple[str, Result]]) -> Plot | None:
    if not named:
        return None
    intervals, trials = _intervals(named), _trials(named)
    marks = [intervals, trials, _medians(named)]
    across = linear(
        (*intervals.low, *intervals.high, *trials.x), _("deviation from the median (%)"), suffix=" %", most=9
    )
    panel = Panel(rows([case for case, _result in named]), marks, ROW * len(named))
    return Plot("spread", [Figure("", {"": Chart(across, [panel])})])


def _deviation(value: float, result: Result) -> float | None:
    return 100 * (value / result.throughput - 1) if result.throughput else None


def _trials(named: Sequence[tuple[str, Result]]) -> Dots:
    points = [(row, value, result) for row, (_case, result) in enumerate(named) for value in result.trials]
    deviations = [_deviation(value, result) for _row, value, result in points]
    texts = [
        f"{number.throughput(value)} {rate_unit(result.unit)} ({deviation or 0.0:+.2f} %)"
        for (_row, value, result), deviation in zip(points, deviations, strict=True)
    ]
    return Dots(opacity=0.65, x=deviations, y=[row for row, _value, _result in points], texts=texts, radius=4)


def _intervals(named: Sequence[tuple[str, Result]]) -> Whiskers:
    known = [(row, result, result.interval) for row, (_case, result) in enumerate(named) if result.interval]
    return Whiskers(
        "band",
        at=[row for row, _result, _interval in known],
        low=[_deviation(interval.low, result) for _row, result, interval in known],
        high=[_deviation(interval.high, result) for _row, result, interval in known],
        flat=True,
        width=12,
    )


def _medians(named: Sequence[tuple[str, Result]]) -> Dots:
    texts = [
        _(
            "median {rate} {interval}",
            rate=number.throughput(r.throughput),
            interval=number.interval(r.interval),
        )
        for _case, r in named
    ]
    places = range(len(named))
    return Dots("ink", x=[0] * len(named), y=list(places), texts=texts, shape="tick", radius=8)


STEPS_NOTE = _("The median trial of a case. The shaded steps are outside the window and do not count.")
STEP = _("step")
AIR = 0.15
# Stretches into which all lines of the plot are thinned together, and those of one at most and at least.
STEP_BUCKETS = 6_000
MOST_STEPS, LEAST_STEPS = 400, 80


def steps_plot(traces: Sequence[StepTrace]) -> Plot | None:
    """One figure a case, chosen on the page."""
    known = [trace for trace in traces if trace.seconds]
    buckets = min(MOST_STEPS, max(LEAST_STEPS, STEP_BUCKETS // max(1, len(known))))
    return Plot("steps", [_steps_figure(trace, buckets) for trace in known]) if known else None


def _steps_figure(trace: StepTrace, buckets: int) -> Figure:
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
            _("Window"): _steps_chart(trace, marks, linear([], title, bounds=bounds), note),
            _("Everything"): _steps_chart(trace, marks, logarithmic(milliseconds, title)),
        },
    )


def _steps_chart(trace: StepTrace, marks: Sequence[Mark], y: Axis, note: str = "") -> Chart:
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


SAMPLES_NOTE = _(
    "Read from outside the workload during that same trial; host-wide figures count every process."
)
PANEL = 84
# Stretches into which all lines of the plot are thinned together, and those of one at most and at least.
SAMPLE_BUCKETS = 30_000
MOST_SAMPLES, LEAST_SAMPLES = 200, 12
MOST_DEVICES = 16
# Field, its title, and what its numbers are multiplied by to stand in the unit of that title.
QUANTITIES = (
    ("utilisation", _("utilisation (%)"), 100.0),
    ("power_watts", _("power (W)"), 1.0),
    ("temperature_c", _("temperature (°C)"), 1.0),
    ("clock_mhz", _("clock (MHz)"), 1.0),
    ("memory_bytes", _("memory (GiB)"), 1 / GIB),
)


def samples_plot(samples: Sequence[SampleSeries]) -> Plot | None:
    """One figure a case, chosen on the page; a quantity no device reports has no panel."""
    cases: dict[str, list[SampleSeries]] = {}
    for series in samples:
        cases.setdefault(series.case, []).append(series)
    panels = [each for each in QUANTITIES if _reported(samples, each[0])]
    if not panels:
        return None
    lines = len(panels) * sum(min(MOST_DEVICES, len(devices)) for devices in cases.values())
    buckets = min(MOST_SAMPLES, max(LEAST_SAMPLES, SAMPLE_BUCKETS // lines))
    return Plot(
        "samples", [_samples_figure(case, devices, panels, buckets) for case, devices in cases.items()]
    )


def _reported(samples: Sequence[SampleSeries], field: str) -> bool:
    return any(value is not None for series in samples for value in getattr(series, field))


def _samples_figure(
    case: str,
    devices: Sequence[SampleSeries],
    quantities: Sequence[tuple[str, str, float]],
    buckets: int,
) -> Figure:
    drawn = devices[:MOST_DEVICES]
    panels = []
    for field, title, scale in quantities:
        lines = [_samples_line(series, index, field, scale, buckets) for index, series in enumerate(drawn)]
        panels.append(Panel(linear((v for line in lines for v in line.y), title, most=4), lines, PANEL))
    ends = (0.0, max([1.0, *(series.seconds[-1] for series in drawn if series.seconds)]))
    key: list[tuple[str, str]] = (
        [(tone(index), _device_name(series)) for index, series in enumerate(drawn)] if len(drawn) > 1 else []
    )
    if left_out := len(devices) - len(drawn):
        key.append(("", _("{count} more devices are not drawn", count=left_out)))
    return Figure(
        case, {"": Chart(linear([], _("seconds since the trial began"), bounds=ends, most=11), panels, key)}
    )


def _samples_line(series: SampleSeries, index: int, field: str, scale: float, buckets: int) -> Line:
    values = [None if value is None else value * scale for value in getattr(series, field)]
    return Line(
        tone(index),
        x=series.seconds,
        y=values,
        name=_device_name(series),
        width=1.25,
        dash=index >= TONES,
        tip="{x} s: {y}",
        buckets=buckets,
    )


def _device_name(series: SampleSeries) -> str:
    """Name the device; samples of a host count everything that runs there."""
    return _("{device} (host-wide)", device=series.device) if is_host(series.device) else series.device
