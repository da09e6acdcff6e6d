"""What the devices said of themselves during a trial: one panel a quantity, one line a device."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.pages.number import GIB
from trainmark.report.document import SampleSeries
from trainmark.view.chart.axis import linear
from trainmark.view.chart.model import TONES, Chart, Figure, Line, Panel, Plot, tone

PANEL = 84
# Stretches into which all lines of the plot are thinned together, and those of one at most and at least.
BUCKETS = 30_000
MOST, LEAST = 200, 12
MOST_DEVICES = 16
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
    lines = len(panels) * sum(min(MOST_DEVICES, len(devices)) for devices in cases.values())
    buckets = min(MOST, max(LEAST, BUCKETS // lines))
    return Plot("samples", [_figure(case, devices, panels, t, buckets) for case, devices in cases.items()])


def _reported(samples: Sequence[SampleSeries], field: str) -> bool:
    return any(value is not None for series in samples for value in getattr(series, field))


def _figure(
    case: str,
    devices: Sequence[SampleSeries],
    quantities: Sequence[tuple[str, str, float]],
    t: dict[str, str],
    buckets: int,
) -> Figure:
    drawn = devices[:MOST_DEVICES]
    panels = []
    for field, title, scale in quantities:
        lines = [_line(series, index, field, scale, buckets) for index, series in enumerate(drawn)]
        panels.append(Panel(linear((v for line in lines for v in line.y), title, most=4), lines, PANEL))
    ends = (0.0, max([1.0, *(series.seconds[-1] for series in drawn if series.seconds)]))
    key = [(tone(index), series.device) for index, series in enumerate(drawn)] if len(drawn) > 1 else []
    if left_out := len(devices) - len(drawn):
        key.append(("", t["devices_left_out"].format(count=left_out)))
    return Figure(case, {"": Chart(linear([], t["axis_seconds"], bounds=ends, most=11), panels, key)})


def _line(series: SampleSeries, index: int, field: str, scale: float, buckets: int) -> Line:
    values = [None if value is None else value * scale for value in getattr(series, field)]
    return Line(
        tone(index),
        x=series.seconds,
        y=values,
        name=series.device,
        width=1.25,
        dash=index >= TONES,
        tip="{x} s: {y}",
        buckets=buckets,
    )
