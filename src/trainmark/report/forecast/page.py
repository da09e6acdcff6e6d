"""The forecast as one HTML file that needs no network: plots, the rows behind them, what they assume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmark.base.text import one_line
from trainmark.report.forecast.plot import Panel, chart, key
from trainmark.report.format import number, templating
from trainmark.report.format.page import frame
from trainmark.report.format.table import Table

HEADER = ("case", "topology", "devices", "forecast", "80 % interval", "a device", "of ideal")
CHECKED = ("published", "error")
RIGHT = frozenset(range(2, 9))


def render(panels: Sequence[Panel]) -> str:
    checked = any(panel.checked for panel in panels)
    env = templating.environment("en", html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("forecast.html.j2").render(
        panels=panels,
        charts=[(panel.name, chart(panel, small=len(panels) > 1)) for panel in panels],
        key=key(panels),
        checked=checked,
        table=Table(
            (*HEADER, *CHECKED) if checked else HEADER,
            [row for panel in panels for row in _rows(panel, checked)],
            RIGHT,
        ),
        **frame(),
    )


def _rows(panel: Panel, checked: bool) -> Iterator[tuple[str, ...]]:
    published = {point.topology: point.throughput for point in panel.checked}
    for point in panel.forecast:
        measured = published.get(point.topology)
        error = f"{100 * (point.throughput / measured - 1):+.1f} %" if measured else number.MISSING
        yield (
            panel.name,
            point.topology,
            f"{point.devices:,}",
            f"{number.throughput(point.throughput)} {panel.unit}/s",
            number.bounds(point.low, point.high),
            number.throughput(point.rate),
            number.percent(point.rate / panel.ideal) if panel.ideal else number.MISSING,
            *((number.throughput(measured), error) if checked else ()),
        )
