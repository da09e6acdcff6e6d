"""A chart in words, for who listens to the page."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.view.chart.model import Bars, Chart, Dots, Line

MOST_LETTERS = 600


def described(chart: Chart) -> str:
    """Return the axes, the texts of the points, and the ends of long lines; cut where it gets long."""
    axes = (", ".join(filter(None, (panel.y.title for panel in chart.panels))), chart.x.title)
    whole = ". ".join(filter(None, (" / ".join(filter(None, axes)), *_series(chart))))
    return whole if len(whole) <= MOST_LETTERS else whole[: MOST_LETTERS - 1] + "…"


def _series(chart: Chart) -> Iterator[str]:
    for mark in (mark for panel in chart.panels for mark in panel.marks):
        if isinstance(mark, (Dots, Bars)) and mark.texts:
            yield f"{mark.name}: {', '.join(mark.texts)}" if mark.name else ", ".join(mark.texts)
        elif isinstance(mark, Line) and mark.tip:
            known = [value for value in mark.y if value is not None]
            if known:
                yield f"{mark.name} {min(known):.4g} – {max(known):.4g}".strip()
