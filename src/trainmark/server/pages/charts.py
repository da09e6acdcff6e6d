"""Charts for pages whose policy allows no style attribute, trend lines, and a machine's health."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from math import ceil

from markupsafe import Markup

from trainmark.pages import number
from trainmark.pages.history_chart import time_axis
from trainmark.server.database.rows import Health
from trainmark.view.catalogue import Lang, localized
from trainmark.view.chart import svg
from trainmark.view.chart.axis import linear
from trainmark.view.chart.model import Bars, Chart, Dots, Line, Mark, Panel
from trainmark.view.chart.svg import described
from trainmark.view.message import _

MARGIN_STEP, MOST_MARGIN = 8, 256
LINE_WIDTH, LINE_HEIGHT, LINE_MARGIN = 120, 28, 3
MOST_POINTS = 60


def render_svg(chart: Chart, title: str, lang: Lang) -> Markup:
    """Return the chart as wide as its place; its left margin is a class of the style sheet."""
    chart = localized(chart, lang)
    rows = " rows" if any(panel.y.rows for panel in chart.panels) else ""
    left = min(MOST_MARGIN, MARGIN_STEP * ceil(svg.margin(chart) / MARGIN_STEP))
    return Markup(
        f'<div class="chart left-{left}{rows}"><svg role="img" aria-label="{svg.text(title)}"'
        f' height="{svg.height(chart)}"><desc>{svg.text(described(chart))}</desc>'
        f"{svg.body(chart, lang)}</svg></div>"
    )


def trendline(
    values: Sequence[float], mark: int | None = None, tone: str = "muted", label: str = ""
) -> Markup:
    """Return the last values as a small line; `mark` is the index of the first one of a new level."""
    skipped = max(0, len(values) - MOST_POINTS)
    shown = values[skipped:]
    if len(shown) < 2:
        return Markup("")
    low, high = min(shown), max(shown)
    scale = (LINE_HEIGHT - 2 * LINE_MARGIN) / ((high - low) or 1.0)
    heights = [LINE_HEIGHT - LINE_MARGIN - scale * (value - low) for value in shown]
    places = _places(len(shown))
    place = None if mark is None or not skipped < mark < len(values) else mark - skipped
    if place is None:
        parts = [_path(places, heights, "muted")]
    else:
        x = (float(places[place - 1]) + float(places[place])) / 2
        parts = [
            _path(places[: place + 1], heights[: place + 1], "muted"),
            f'<line class="{tone}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{LINE_HEIGHT}"/>',
            _path(places[place:], heights[place:], tone),
        ]
    parts.append(f'<circle class="{tone}" cx="{places[-1]}" cy="{heights[-1]:.1f}" r="2.4"/>')
    return Markup(
        f'<svg class="trendline" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" width="{LINE_WIDTH}"'
        f' height="{LINE_HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


@lru_cache(maxsize=MOST_POINTS + 1)
def _places(count: int) -> list[str]:
    """Return where so many values lie across; a table has one line a row, most of the same length."""
    across = (LINE_WIDTH - 2 * LINE_MARGIN) / (count - 1)
    return [f"{LINE_MARGIN + index * across:.1f}" for index in range(count)]


def _path(places: Sequence[str], heights: Sequence[float], tone: str) -> str:
    if len(places) < 2:
        return ""
    line = ",%.1f ".join(places) + ",%.1f"
    return f'<polyline class="{tone}" points="{line % tuple(heights)}"/>'


HEIGHT, FAILED_HEIGHT = 220, 60
LEAST_REACH = 5.0
BAR_SHARE = 0.006


def health_chart(health: Sequence[Health]) -> Chart | None:
    """Draw each run's median share of the best results, and below it the trials that failed."""
    known = [run for run in health if run.of_best is not None]
    if not known:
        return None
    across = time_axis([run.time for run in health])
    values = [100 * (run.of_best or 0.0) for run in known]
    low = min(100 - LEAST_REACH, min(values))
    marks: list[Mark] = [
        Line("t0", opacity=0.35, x=[run.time for run in known], y=values, width=1.5),
        *(_dots(known, doubtful) for doubtful in (False, True)),
    ]
    bounds = (max(0.0, low - 0.06 * (100 - low)), 100 + 0.06 * (100 - low))
    panels = [Panel(linear([], _("of the best result"), " %", bounds, 6), marks, HEIGHT)]
    if any(run.failed for run in health):
        failed = [run for run in health if run.failed]
        width = BAR_SHARE * (across.high - across.low)
        bars = Bars(
            "bad",
            x=[run.time for run in failed],
            y=[float(run.failed) for run in failed],
            texts=[f"{run.run}: {run.failed}" for run in failed],
            width=width,
        )
        most = max(run.failed for run in failed)
        panels.append(Panel(linear([0, most], _("failed trials"), most=3), [bars], FAILED_HEIGHT))
    return Chart(across, panels)


def _dots(known: Sequence[Health], doubtful: bool) -> Dots:
    own = [run for run in known if bool(run.doubts) == doubtful]
    return Dots(
        "t0",
        x=[run.time for run in own],
        y=[100 * (run.of_best or 0.0) for run in own],
        texts=[
            _("{run}: {share} of its best", run=run.run, share=number.percent(run.of_best)) for run in own
        ],
        links=[f"/runs/{run.run_uuid}" for run in own],
        shape="ring" if doubtful else "dot",
        radius=4,
    )
