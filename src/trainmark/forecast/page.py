"""The forecast of sizes that were not run: a plot, the figures, what they assume, and how well it did on rows
that others published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmark.forecast.cases import NamedCase
from trainmark.forecast.fabric import ONE_DEVICE
from trainmark.forecast.forecast import SizeThroughput, measured
from trainmark.forecast.model import ForecastCase
from trainmark.forecast.validation import ErrorSummary, ForecastCheck
from trainmark.measure.figure import Interval
from trainmark.measure.quantity import rate_words, seconds_words
from trainmark.pages import number
from trainmark.view import blocks
from trainmark.view.blocks import (
    Answer,
    Block,
    Facts,
    Items,
    Page,
    Section,
    Sentence,
    Table,
    Text,
    only,
    without,
)
from trainmark.view.chart import model
from trainmark.view.chart.axis import counts, linear
from trainmark.view.chart.model import Band, Chart, Dots, Figure, Label, Line, Mark, Plot, Rule
from trainmark.view.chart.svg import sheet
from trainmark.view.message import Message, _

HEIGHT, SMALL_HEIGHT = 320, 150
COLUMNS = 3


@dataclass(frozen=True)
class Panel:
    """`measured` was known to the forecast, `checked` was not; `assumptions` are names and values."""

    name: str
    unit: str
    measured: tuple[SizeThroughput, ...]
    forecast: tuple[SizeThroughput, ...]
    checked: tuple[SizeThroughput, ...] = ()
    assumptions: tuple[tuple[Text, Text], ...] = ()

    @property
    def ideal(self) -> float | None:
        """The throughput of one device alone, where it was measured."""
        return next((point.rate for point in self.measured if point.size == ONE_DEVICE), None)


def case_panel(named: NamedCase, forecasts: Sequence[SizeThroughput]) -> Panel:
    known, assumptions = measured(named.case), tuple(_assumptions(named.case))
    return Panel(named.name, named.unit, known, tuple(forecasts), assumptions=assumptions)


def _assumptions(case: ForecastCase) -> Iterator[tuple[Text, Text]]:
    """Yield what the forecast of a case was made from."""
    fabric, size = case.fabric, sum(bucket.bytes for bucket in case.buckets) / 1e6
    yield _("batch of a device"), f"{case.batch:,g}"
    yield _("network of a node"), f"{rate_words(fabric.bandwidth)}, {seconds_words(fabric.latency)}"
    intra = f"{rate_words(fabric.intra_bandwidth)}, {seconds_words(fabric.intra_latency)}"
    yield _("inside a node"), intra
    yield "all-reduce", case.algorithm
    buckets = _("{size} MB in {count} buckets", size=f"{size:,.1f}", count=len(case.buckets))
    yield _("gradients"), buckets
    loader = _("{rate} samples/s at most", rate=f"{case.loader:,g}") if case.loader else _("not limiting")
    yield _("loader of a node"), loader
    yield _("variation of a step"), f"{100 * case.variation:.1f} %"


def validation_panels(checks: Sequence[ForecastCheck]) -> list[Panel]:
    panels: dict[str, Panel] = {}
    for check in checks:
        series, size = check.series, check.size
        name = f"{series.source} {series.name}"
        start = Panel(series.name, series.row.unit.removesuffix("/s"), measured(series.case), ())
        so_far = panels.setdefault(name, start)
        expected = SizeThroughput(size, check.predicted, check.interval)
        published = SizeThroughput(size, check.published)
        panels[name] = replace(
            so_far, forecast=(*so_far.forecast, expected), checked=(*so_far.checked, published)
        )
    return list(panels.values())


def forecast_page(panels: Sequence[Panel]) -> Page:
    lede = _("What to expect at sizes that were not run, each figure with its 80 % interval.")
    return Page(
        _("Forecast throughput"),
        (only("html", *_drawn(panels, lede)), without("html", *map(_expected, panels))),
    )


def validation_page(checks: Sequence[ForecastCheck], summaries: Mapping[str, ErrorSummary]) -> Page:
    lede = _("Every published series with several nodes, forecast from its rows of one node alone.")
    header = (
        *(_("source"), _("series"), _("fitted on"), _("topology"), _("published"), _("forecast")),
        *(_("80 % interval"), _("error"), _("covered"), ""),
    )
    rows = [_check_cells(check) for check in checks]
    sentences = [_summary(name, summary) for name, summary in summaries.items()]
    return Page(
        _("Forecasts against published results"),
        (
            only("html", *_drawn(validation_panels(checks), lede)),
            without("html", Table(header, rows, frozenset({4, 5, 7})), Items(sentences)),
        ),
    )


def _summary(name: str, summary: ErrorSummary) -> Message:
    return _(
        "{name}: {rows} rows, median error {median} %, 90th percentile {p90} %, {covered} % inside their 80 %"
        " interval",
        name=name,
        rows=summary.rows,
        median=f"{100 * summary.median:.1f}",
        p90=f"{100 * summary.p90:.1f}",
        covered=f"{100 * summary.coverage:.0f}",
    )


def _check_cells(check: ForecastCheck) -> tuple[Text, ...]:
    return (
        ", ".join((check.series.source, *check.series.also_in)),
        check.series.name,
        check.series.fitted,
        str(check.size),
        f"{check.published:,.0f}",
        f"{check.predicted:,.0f}",
        _bounds(check.interval),
        f"{100 * check.error:+.1f} %",
        _("yes") if check.covered else _("no"),
        _("odd") if check.series.odd else "",
    )


def _expected(panel: Panel) -> Section:
    """One case in a terminal."""
    known = ", ".join(f"{point.size} {point.throughput:,.1f}" for point in panel.measured)
    rows = [
        (
            str(point.size),
            f"{point.size.devices:,}",
            f"{point.throughput:,.0f} {panel.unit}/s",
            _bounds(point.interval),
            f"{100 * point.efficiency:.1f} %",
            f"{1e3 * point.step_seconds:.1f} ms",
        )
        for point in panel.forecast
    ]
    header = (_("topology"), _("devices"), _("forecast"), _("80 % interval"), _("efficiency"), _("step"))
    start = Sentence(_("from {measured} {unit}/s", measured=known, unit=panel.unit), look="caption")
    return Section(panel.name, [start, Table(header, rows, frozenset({1, 2, 4, 5}))])


def _bounds(interval: Interval | None) -> str:
    return f"[{interval.low:,.0f}, {interval.high:,.0f}]" if interval else ""


def _drawn(panels: Sequence[Panel], lede: Message) -> Iterator[Block]:
    """Yield what HTML shows."""
    yield Answer([lede])
    charts = plot(panels)
    note = _("Throughput of all devices divided by their number; a level line would be perfect scaling.")
    yield Section(_("Throughput of one device"), [blocks.Chart(charts, note, beside=True)])
    checked = any(panel.checked for panel in panels)
    header = (
        *(_("case"), _("topology"), _("devices"), _("forecast"), _("80 % interval"), _("a device")),
        _("of ideal"),
        *((_("published"), _("error")) if checked else ()),
    )
    rows = [row for panel in panels for row in _rows(panel, checked)]
    yield Section(_("Figures"), [Table(header, rows, frozenset(range(2, 9)))])
    assumed = [Section(panel.name, [Facts(panel.assumptions)]) for panel in panels if panel.assumptions]
    yield Section(_("Assumptions"), [Items(ASSUMPTIONS), *assumed])


ASSUMPTIONS = (
    _("The batch of a device stays as it was measured; the batch of a step grows with the devices."),
    _("All nodes are alike, and no other job uses their network."),
    _("Gradients are exchanged in buckets beside the backward pass; nodes wait for the slowest."),
    _(
        "An 80 % interval holds the true figure four times in five, as it did for published series that the"
        " model had not seen. It does not cover a network or a software that behaves differently at scale."
    ),
)


def _rows(panel: Panel, checked: bool) -> Iterator[tuple[str, ...]]:
    published = {point.size: point.throughput for point in panel.checked}
    for point in panel.forecast:
        true, bounds = published.get(point.size), point.interval
        error = f"{100 * (point.throughput / true - 1):+.1f} %" if true else number.MISSING
        yield (
            panel.name,
            str(point.size),
            f"{point.size.devices:,}",
            f"{number.throughput(point.throughput)} {panel.unit}/s",
            number.bounds(bounds.low, bounds.high) if bounds else number.MISSING,
            number.throughput(point.rate),
            number.percent(point.rate / panel.ideal) if panel.ideal else number.MISSING,
            *((number.throughput(true), error) if checked else ()),
        )


def plot(panels: Sequence[Panel]) -> Plot:
    small = len(panels) > 1
    shared = key(panels)
    return Plot("forecast", [Figure(panel.name, {"": chart(panel, small, shared)}) for panel in panels])


def svg(panels: Sequence[Panel]) -> str:
    """One panel fills the width; several stand beside each other, three a row."""
    charts = [(figure.label, figure.views[""]) for figure in plot(panels).figures]
    return sheet(charts, key(panels), COLUMNS if len(panels) > 1 else 1)


def key(panels: Sequence[Panel]) -> list[tuple[str, str]]:
    checked = any(panel.checked for panel in panels)
    names = [("ink", _("fitted on") if checked else _("measured"))]
    names += [("t1", _("published, not fitted on"))] if checked else []
    return [*names, ("t0", _("forecast, 80 % interval")), ("muted", _("ideal (dashed)"))]


def chart(panel: Panel, small: bool, shared: Sequence[tuple[str, str]]) -> Chart:
    points = (*panel.measured, *panel.checked, *panel.forecast)
    highest = [max(point.rate, _rates(point)[1]) for point in points]
    marks: list[Mark] = [] if panel.ideal is None else [Rule("muted", y=panel.ideal)]
    marks += _forecast(panel)
    for tone, shape, own in (
        ("t0", "dot", panel.forecast),
        ("ink", "dot", panel.measured),
        ("t1", "ring", panel.checked),
    ):
        texts = [f"{point.size}: {point.throughput:,.0f} {panel.unit}/s" for point in own]
        x, y = [point.size.devices for point in own], [point.rate for point in own]
        marks.append(Dots(tone, x=x, y=y, texts=texts, shape=shape))
    marks += [] if small else _shares(panel)
    y_axis = linear(highest, _("{unit}/s a device", unit=panel.unit), most=5 if small else 7)
    frame = model.Panel(y_axis, marks, SMALL_HEIGHT if small else HEIGHT)
    return Chart(counts((point.size.devices for point in points), _("devices"), log=True), [frame], shared)


def _forecast(panel: Panel) -> list[Mark]:
    """A line and its band, from the widest measured point on."""
    path = sorted(panel.forecast, key=lambda point: point.size.devices)
    known = [point for point in panel.measured if path and point.size.devices < path[0].size.devices]
    path = sorted(known, key=lambda point: point.size.devices)[-1:] + path
    if len(path) < 2:
        return []
    x = [point.size.devices for point in path]
    low, high = ([_rates(point)[side] for point in path] for side in (0, 1))
    return [
        Band("t0", opacity=0.16, x=x, low=low, high=high),
        Line("t0", x=x, y=[point.rate for point in path], name=_("forecast"), width=2),
    ]


def _rates(point: SizeThroughput) -> tuple[float, float]:
    """The bounds of one device's throughput; where it is known, itself twice."""
    if point.interval is None:
        return point.rate, point.rate
    return point.interval.low / point.size.devices, point.interval.high / point.size.devices


def _shares(panel: Panel) -> list[Mark]:
    """Each forecast as a share of the ideal."""
    if not panel.ideal:
        return []
    return [
        Label("t0", x=point.size.devices, y=point.rate, text=f"{100 * point.rate / panel.ideal:.0f} %")
        for point in panel.forecast
    ]
