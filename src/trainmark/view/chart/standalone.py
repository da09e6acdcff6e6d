"""Charts as one SVG file, for a page or a slide that has no style of its own."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from trainmark.view.catalogue import Lang
from trainmark.view.chart import svg
from trainmark.view.chart.model import Chart

WIDTH = 960
LINE, SIDE = 20, 14
TITLE = 30
GAP = 26
PALETTE = {
    **dict(
        zip(
            (f"t{index}" for index in range(8)),
            ("#1f6fb2", "#c2571a", "#2c8150", "#9b2f72", "#6549b8", "#a5780d", "#23807f", "#55606d"),
            strict=True,
        )
    ),
    "ink": "#1c2126",
    "muted": "#5a636d",
    "shade": "#5a636d1c",
    "band": "#1f5f9933",
}
STYLE = (
    "text{fill:#5a636d} .name{fill:#1c2126;font-weight:bold} .area{fill:none} .grid{stroke:#e3e1da}"
    " .line{fill:none;stroke-linejoin:round;vector-effect:non-scaling-stroke}"
    " .over{stroke:#fff;stroke-width:3;paint-order:stroke} .ring{fill:#fff;stroke-width:1.5} "
    + " ".join(
        f".{name}.fill,.{name}.fill text{{fill:{colour}}}"
        f" .{name} .line,.{name}.stroke,.{name}.ring{{stroke:{colour}}}"
        for name, colour in PALETTE.items()
    )
)


def render(
    charts: Sequence[tuple[str, Chart]], key: Sequence[tuple[str, str]], columns: int = 1, lang: Lang = "en"
) -> str:
    """Return the named charts in so many columns under one key of colours, each a class and a name."""
    swatches, top = _key(key)
    parts, width = [swatches], WIDTH / columns
    for row in range(ceil(len(charts) / columns)):
        members = charts[row * columns : (row + 1) * columns]
        for column, (name, chart) in enumerate(members):
            parts.append(_placed(name, chart, lang, column * width, top, width))
        top += max(TITLE + svg.height(chart) + GAP for _, chart in members)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif"'
        f' font-size="12">\n<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _placed(name: str, chart: Chart, lang: Lang, x: float, y: int, width: float) -> str:
    left = svg.margin(chart)
    longest = int(width / (svg.LETTER + 1))
    shown = name if len(name) <= longest else name[: longest - 1] + "…"
    whole = f"<title>{svg.text(name)}</title>"
    title = f'<text class="name" x="{x + SIDE:g}" y="{y + 16}">{svg.text(shown)}{whole}</text>'
    inside = f'x="{x + SIDE + left:.0f}" y="{y + TITLE}" width="{width - left - 3 * SIDE:.0f}"'
    drawn = svg.body(chart, lang)
    return f'{title}\n<svg {inside} height="{svg.height(chart)}" overflow="visible">{drawn}</svg>'


def _key(names: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """The swatches in lines, and the height they take."""
    spots, x, y = [], SIDE, LINE
    for tone, name in names:
        room = 30 + svg.LETTER * len(name)
        if x + room > WIDTH and x > SIDE:
            x, y = SIDE, y + LINE
        spots.append(
            f'<g class="{tone} fill"><circle cx="{x + 5:g}" cy="{y - 4}" r="5"/></g>'
            f'<text x="{x + 15:g}" y="{y}">{svg.text(name)}</text>'
        )
        x += round(room)
    return "\n".join(spots), y + LINE if names else LINE
