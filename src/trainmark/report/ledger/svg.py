"""The ledger's plot as one SVG file: for a page or a slide that runs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from trainmark.published.ledger.entry import Entry
from trainmark.report.ledger.plot import Panel, frameworks, lane, panels, tooltip
from trainmark.visible import one_line

TONES = ("#1f6fb2", "#c2571a", "#2c8150", "#9b2f72", "#6549b8", "#a5780d", "#23807f", "#55606d")
WIDTH, LEFT, RIGHT, TOP = 960, 150, 30, 56
ROW = 32
FOOT = 58
LEGEND_COLUMN, LEGEND_LINE, LEGEND_COLUMNS = 100, 18, 7


def render(entries: Sequence[Entry]) -> str:
    known = frameworks(entries)
    parts, y = [_legend(known)], TOP + LEGEND_LINE * ((len(known) - 1) // LEGEND_COLUMNS)
    for panel in panels(entries):
        parts.append(_panel(panel, known, y))
        y += ROW * len(panel.rows) + FOOT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif"'
        f' font-size="12" fill="#1c2126">\n<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _legend(known: Sequence[str]) -> str:
    spots = []
    for index, framework in enumerate(known):
        x = LEFT + LEGEND_COLUMN * (index % LEGEND_COLUMNS)
        y = 20 + LEGEND_LINE * (index // LEGEND_COLUMNS)
        spots.append(
            f'<circle cx="{x}" cy="{y}" r="5" fill="{_tone(index)}"/>'
            f'<text x="{x + 9}" y="{y + 4}">{_text(framework)}</text>'
        )
    return "\n".join(spots)


def _panel(panel: Panel, known: Sequence[str], top: int) -> str:
    fastest = max(entry.row.per_device or 0.0 for _, entries in panel.rows for entry in entries)
    step = _step(fastest)
    end = step * ceil(fastest / step)
    bottom = top + ROW * len(panel.rows)

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / end

    lines = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{_text(panel.workload)}</text>']
    for tick in range(ceil(end / step) + 1):
        at = x(tick * step)
        lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}" stroke="#e3e1da"/>')
        lines.append(
            f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#5a636d">'
            f"{tick * step:,.0f}</text>"
        )
    for row, (label, entries) in enumerate(panel.rows):
        y = top + ROW * row + ROW / 2
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{_text(label)}</text>')
        for entry in entries:
            framework = known.index(entry.row.framework)
            at = y + ROW * lane(framework, len(known))
            lines.append(
                f'<circle cx="{x(entry.row.per_device or 0.0):.1f}" cy="{at:.1f}" r="3.5"'
                f' fill="{_tone(framework)}" fill-opacity="0.8">'
                f"<title>{_text(tooltip(entry))}</title></circle>"
            )
    lines.append(
        f'<text x="{WIDTH - RIGHT}" y="{bottom + 32}" text-anchor="end" fill="#5a636d">'
        f"{_text(panel.unit)} a device</text>"
    )
    return "\n".join(lines)


def _step(fastest: float) -> float:
    """A round distance between ticks that makes five to ten of them."""
    power = 10.0 ** floor(log10(fastest))
    return next(power * part for part in (0.1, 0.2, 0.5, 1) if fastest / (power * part) <= 10)


def _tone(index: int) -> str:
    return TONES[index % len(TONES)]


def _text(text: str) -> str:
    return escape(one_line(text))
