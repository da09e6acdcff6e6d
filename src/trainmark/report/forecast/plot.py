"""Measured, forecast and ideal throughput of one device by the number of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.report.chart import model, standalone
from trainmark.report.chart.axis import counts, linear
from trainmark.report.chart.model import Band, Chart, Dots, Label, Line, Mark, Rule
from trainmark.report.format.words import words

HEIGHT, SMALL_HEIGHT = 320, 150
COLUMNS = 3


@dataclass(frozen=True)
class Point:
    """A throughput of all devices; `low` and `high` where it was forecast."""

    topology: str
    devices: int
    throughput: float
    low: float | None = None
    high: float | None = None

    @property
    def rate(self) -> float:
        return self.throughput / self.devices


@dataclass(frozen=True)
class Panel:
    """`measured` was known to the forecast, `checked` was not; `assumptions` are names and values."""

    name: str
    unit: str
    measured: tuple[Point, ...]
    forecast: tuple[Point, ...]
    checked: tuple[Point, ...] = ()
    assumptions: tuple[tuple[str, str], ...] = ()

    @property
    def ideal(self) -> float | None:
        """The throughput of one device alone, where it was measured."""
        return next((point.rate for point in self.measured if point.devices == 1), None)


def svg(panels: Sequence[Panel]) -> str:
    """One panel fills the width; several stand beside each other, three a row."""
    small = len(panels) > 1
    charts = [(panel.name, chart(panel, small)) for panel in panels]
    return standalone.render(charts, key(panels), words("en"), COLUMNS if small else 1)


def key(panels: Sequence[Panel]) -> list[tuple[str, str]]:
    checked = any(panel.checked for panel in panels)
    names = [("ink", "fitted on" if checked else "measured")]
    names += [("t1", "published, not fitted on")] if checked else []
    return [*names, ("t0", "forecast, 80 % interval"), ("muted", "ideal (dashed)")]


def chart(panel: Panel, small: bool = False) -> Chart:
    points = (*panel.measured, *panel.checked, *panel.forecast)
    highest = [max(point.rate, (point.high or 0.0) / point.devices) for point in points]
    marks: list[Mark] = [] if panel.ideal is None else [Rule("muted", y=panel.ideal)]
    marks += _forecast(panel)
    for tone, shape, own in (
        ("t0", "dot", panel.forecast),
        ("ink", "dot", panel.measured),
        ("t1", "ring", panel.checked),
    ):
        texts = [f"{point.topology}: {point.throughput:,.0f} {panel.unit}/s" for point in own]
        x, y = [point.devices for point in own], [point.rate for point in own]
        marks.append(Dots(tone, x=x, y=y, texts=texts, shape=shape))
    marks += [] if small else _shares(panel)
    y_axis = linear(highest, f"{panel.unit}/s a device", most=5 if small else 7)
    frame = model.Panel(y_axis, marks, SMALL_HEIGHT if small else HEIGHT)
    return Chart(counts((point.devices for point in points), "devices", log=True), [frame])


def _forecast(panel: Panel) -> list[Mark]:
    """A line and its band, from the widest measured point on."""
    path = sorted(panel.forecast, key=lambda point: point.devices)
    known = [point for point in panel.measured if path and point.devices < path[0].devices]
    path = sorted(known, key=lambda point: point.devices)[-1:] + path
    if len(path) < 2:
        return []
    x = [point.devices for point in path]
    bounds = [((p.low or p.throughput) / p.devices, (p.high or p.throughput) / p.devices) for p in path]
    low, high = ([bound[side] for bound in bounds] for side in (0, 1))
    return [
        Band("t0", opacity=0.16, x=x, low=low, high=high),
        Line("t0", x=x, y=[point.rate for point in path], name="forecast", width=2),
    ]


def _shares(panel: Panel) -> list[Mark]:
    """Each forecast as a share of the ideal."""
    if not panel.ideal:
        return []
    return [
        Label("t0", x=point.devices, y=point.rate, text=f"{100 * point.rate / panel.ideal:.0f} %")
        for point in panel.forecast
    ]
