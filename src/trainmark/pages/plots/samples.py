"""What the devices said of themselves during a trial: one panel a quantity, one line a device."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.events.schema import is_host
from trainmark.pages.number import GIB
from trainmark.store.series import SampleSeries
from trainmark.view.chart.axis import linear
from trainmark.view.chart.model import TONES, Chart, Figure, Line, Panel, Plot, tone
from trainmark.view.message import _

NOTE = _("Read from outside the workload during that same trial; host-wide figures count every process.")
PANEL = 84
# Stretches into which all lines of the plot are thinned together, and those of one at most and at least.
BUCKETS = 30_000
MOST, LEAST = 200, 12
MOST_DEVICES = 16
# Field, its title, and what its numbers are multiplied by to stand in the unit of that title.
QUANTITIES = (
    ("utilisation", _("utilisation (%)"), 100.0),
    ("power_watts", _("power (W)"), 1.0),
    ("temperature_c", _("temperature (°C)"), 1.0),
    ("clock_mhz", _("clock (MHz)"), 1.0),
    ("memory_bytes", _("memory (GiB)"), 1 / GIB),
)


def plot(samples: Sequence[SampleSeries]) -> Plot | None:
    """One figure a case, chosen on the page; a quantity no device reports has no panel."""
    cases: dict[str, list[SampleSeries]] = {}
    for series in samples:
        cases.setdefault(series.case, []).append(series)
    panels = [each for each in QUANTITIES if _reported(samples, each[0])]
    if not panels:
        return None
    lines = len(panels) * sum(min(MOST_DEVICES, len(devices)) for devices in cases.values())
    buckets = min(MOST, max(LEAST, BUCKETS // lines))
    return Plot("samples", [_figure(case, devices, panels, buckets) for case, devices in cases.items()])


def _reported(samples: Sequence[SampleSeries], field: str) -> bool:
    return any(value is not None for series in samples for value in getattr(series, field))


def _figure(
    case: str,
    devices: Sequence[SampleSeries],
    quantities: Sequence[tuple[str, str, float]],
    buckets: int,
) -> Figure:
    drawn = devices[:MOST_DEVICES]
    panels = []
    for field, title, scale in quantities:
        lines = [_line(series, index, field, scale, buckets) for index, series in enumerate(drawn)]
        panels.append(Panel(linear((v for line in lines for v in line.y), title, most=4), lines, PANEL))
    ends = (0.0, max([1.0, *(series.seconds[-1] for series in drawn if series.seconds)]))
    key: list[tuple[str, str]] = (
        [(tone(index), _name(series)) for index, series in enumerate(drawn)] if len(drawn) > 1 else []
    )
    if left_out := len(devices) - len(drawn):
        key.append(("", _("{count} more devices are not drawn", count=left_out)))
    return Figure(
        case, {"": Chart(linear([], _("seconds since the trial began"), bounds=ends, most=11), panels, key)}
    )


def _line(series: SampleSeries, index: int, field: str, scale: float, buckets: int) -> Line:
    values = [None if value is None else value * scale for value in getattr(series, field)]
    return Line(
        tone(index),
        x=series.seconds,
        y=values,
        name=_name(series),
        width=1.25,
        dash=index >= TONES,
        tip="{x} s: {y}",
        buckets=buckets,
    )


def _name(series: SampleSeries) -> str:
    """Name the device; samples of a host count everything that runs there."""
    return _("{device} (host-wide)", device=series.device) if is_host(series.device) else series.device
