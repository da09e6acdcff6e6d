"""Charts for pages whose policy allows no style attribute, and the small line of a series in a table row."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil

from markupsafe import Markup

from trainmark.report.chart import svg
from trainmark.report.chart.describe import described
from trainmark.report.chart.model import Chart

MARGIN_STEP, MOST_MARGIN = 8, 256
LINE_WIDTH, LINE_HEIGHT = 120, 28
MOST_POINTS = 60


def render(chart: Chart, title: str, words: dict[str, str]) -> Markup:
    """Return the chart as wide as its place; its left margin is a class of the style sheet."""
    rows = " rows" if any(panel.y.rows for panel in chart.panels) else ""
    left = min(MOST_MARGIN, MARGIN_STEP * ceil(svg.margin(chart) / MARGIN_STEP))
    return Markup(
        f'<div class="chart left-{left}{rows}"><svg role="img" aria-label="{svg.text(title)}"'
        f' height="{svg.height(chart)}"><desc>{svg.text(described(chart))}</desc>'
        f"{svg.body(chart, words)}</svg></div>"
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
    span = (high - low) or 1.0
    margin = 3
    across = (LINE_WIDTH - 2 * margin) / (len(shown) - 1)
    points = [
        (margin + index * across, margin + (LINE_HEIGHT - 2 * margin) * (1 - (value - low) / span))
        for index, value in enumerate(shown)
    ]
    place = None if mark is None or not skipped < mark < len(values) else mark - skipped
    before, after = (points, []) if place is None else (points[: place + 1], points[place:])
    parts = [_path(before, "muted")]
    if place is not None:
        x = (points[place - 1][0] + points[place][0]) / 2
        parts.append(f'<line class="{tone}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{LINE_HEIGHT}"/>')
        parts.append(_path(after, tone))
    end = points[-1]
    parts.append(f'<circle class="{tone}" cx="{end[0]:.1f}" cy="{end[1]:.1f}" r="2.4"/>')
    return Markup(
        f'<svg class="trendline" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" width="{LINE_WIDTH}"'
        f' height="{LINE_HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _path(points: Sequence[tuple[float, float]], tone: str) -> str:
    if len(points) < 2:
        return ""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{tone}" points="{line}"/>'
