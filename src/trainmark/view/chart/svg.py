"""A chart as SVG: horizontal places in per cent, heights in pixels, so that it fits any width unscaled.

Colours are CSS classes of the page. Lines lie in an inner SVG that is stretched, with strokes that are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil
from unicodedata import east_asian_width

from trainmark.base.text import one_line
from trainmark.view.catalogue import Lang, translated
from trainmark.view.chart.axis import Axis
from trainmark.view.chart.marks import drawn
from trainmark.view.chart.model import Bars, Chart, Dots, Line, Panel
from trainmark.view.message import _

LETTER = 6.7  # pixels, the width of one at size 12
HEAD, SECOND_LINE = 26, 16
FOOT, TITLED_FOOT = 26, 46
GAP = 14
MOST_MARGIN = 250
LONGEST_ROW = 46
MOST_NARROW_LETTERS = 32  # of all ticks together, on a phone


def render(chart: Chart, title: str, lang: Lang = "en") -> str:
    """Return the chart for a page, as wide as its place there."""
    rows = any(panel.y.rows for panel in chart.panels)
    return (
        f'<div class="chart{" rows" if rows else ""}" style="--left: {margin(chart):.0f}px">'
        f'<svg role="img" aria-label="{text(title)}" height="{height(chart)}">'
        f"<desc>{text(described(chart))}</desc>{body(chart, lang)}</svg></div>"
    )


def body(chart: Chart, lang: Lang) -> str:
    """Return the panels, to stand in an SVG whose width is that of the plotted area."""
    parts, top, left = [], 0, margin(chart)
    for panel in chart.panels:
        top += _top(panel)
        last = panel is chart.panels[-1]
        area = '<rect class="area" width="100%" height="100%"/>'
        inside = "".join((area, *_frame(chart, panel, lang, last, left), *drawn(chart.x, panel)))
        parts.append(
            f'<svg class="panel" y="{top}" width="100%" height="{panel.height}" overflow="visible"'
            f' data-x="{_scale(chart.x)}" data-y="{_scale(panel.y)}">{inside}</svg>'
        )
        top += panel.height + GAP
    return "\n".join(parts)


def height(chart: Chart) -> int:
    panels = sum(_top(panel) + panel.height for panel in chart.panels) + GAP * (len(chart.panels) - 1)
    return panels + (TITLED_FOOT if chart.x.title else FOOT)


def margin(chart: Chart) -> float:
    """Return the room for the names of the ticks at the left, in pixels."""
    names = [_row(name) for panel in chart.panels for _, name in panel.y.ticks]
    longest = max(map(_letters, names), default=0)
    return min(MOST_MARGIN, LETTER * longest + 14)


def text(value: str) -> str:
    return escape(one_line(value))


def _top(panel: Panel) -> int:
    """Return the room above a panel: for a line of text where it has one, for a second where it has both."""
    titled = bool(panel.y.title or panel.y.log or panel.y.cut)
    return HEAD + SECOND_LINE * (titled and bool(panel.note)) if titled or panel.note else 10


def _titled(axis: Axis, lang: Lang) -> str:
    """The title of an axis, and what is unusual about it."""
    remarks = [_("log scale")] if axis.log else []
    if axis.cut:
        remarks.append(_("axis begins at {low}, not at 0", low=_end(axis.low)))
    return ", ".join(filter(None, (axis.title, *(translated(remark, lang) for remark in remarks))))


def _end(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _frame(chart: Chart, panel: Panel, lang: Lang, last: bool, left: float) -> Iterator[str]:
    if head := _titled(panel.y, lang):
        line = -10 - SECOND_LINE * bool(panel.note)
        yield f'<text class="title" x="{-left:.0f}" y="{line}">{text(head)}</text>'
    if panel.note:
        yield f'<text class="title" x="100%" y="-10" text-anchor="end">{text(panel.note)}</text>'
    heights = [panel.height * (1 - (panel.y.place(value) or 0.0)) for value, _ in panel.y.ticks]
    places = [f"{100 * (chart.x.place(value) or 0.0):.4g}%" for value, _ in chart.x.ticks]
    grid = [f'<line x2="100%" y1="{y:.4g}" y2="{y:.4g}"/>' for y in heights]
    if panel.y.rows:
        grid += [f'<line x1="{place}" x2="{place}" y2="{panel.height}"/>' for place in places]
    yield f'<g class="grid">{"".join(grid)}</g>'
    rows = (
        f'<text x="-8" y="{y + 4:.4g}">{text(_row(name))}</text>'
        for y, (_, name) in zip(heights, panel.y.ticks, strict=True)
    )
    yield f'<g class="row" text-anchor="end">{"".join(rows)}</g>'
    if last:
        yield _columns(chart.x, places, panel.height + 18)
    if last and chart.x.title:
        title = text(_titled(chart.x, lang))
        yield f'<text class="title" x="100%" y="{panel.height + 38}" text-anchor="end">{title}</text>'


def _columns(axis: Axis, places: list[str], y: int) -> str:
    """Every second name is one that a narrow page leaves out."""
    names = []
    crowded = len(places) > 4 or sum(_letters(name) for _, name in axis.ticks) > MOST_NARROW_LETTERS
    for index, (place, (_value, name)) in enumerate(zip(places, axis.ticks, strict=True)):
        alternate = ' class="alt"' if crowded and (len(places) - 1 - index) % 2 and not axis.rows else ""
        names.append(f'<text x="{place}" y="{y}"{alternate}>{text(name)}</text>')
    return f'<g text-anchor="middle">{"".join(names)}</g>'


def _scale(axis: Axis) -> str:
    """The ends and whether it is logarithmic, for the script that tells values under the pointer."""
    return f"{axis.low:.6g} {axis.high:.6g} {int(axis.log)}"


def _row(name: str) -> str:
    return name if len(name) <= LONGEST_ROW else name[: LONGEST_ROW - 1] + "…"


def _letters(name: str) -> int:
    """Return the length of a name; a Chinese character is as wide as two letters."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in name)


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


WIDTH = 960
LINE, SIDE = 20, 14
TITLE = 30
SHEET_GAP = 26
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


def sheet(
    charts: Sequence[tuple[str, Chart]], key: Sequence[tuple[str, str]], columns: int = 1, lang: Lang = "en"
) -> str:
    """Return the named charts in so many columns under one key of colours, each a class and a name."""
    swatches, top = _key(key)
    parts, width = [swatches], WIDTH / columns
    for row in range(ceil(len(charts) / columns)):
        members = charts[row * columns : (row + 1) * columns]
        for column, (name, chart) in enumerate(members):
            parts.append(_placed(name, chart, lang, column * width, top, width))
        top += max(TITLE + height(chart) + SHEET_GAP for _, chart in members)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="sans-serif"'
        f' font-size="12">\n<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _placed(name: str, chart: Chart, lang: Lang, x: float, y: int, width: float) -> str:
    left = margin(chart)
    longest = int(width / (LETTER + 1))
    shown = name if len(name) <= longest else name[: longest - 1] + "…"
    whole = f"<title>{text(name)}</title>"
    title = f'<text class="name" x="{x + SIDE:g}" y="{y + 16}">{text(shown)}{whole}</text>'
    inside = f'x="{x + SIDE + left:.0f}" y="{y + TITLE}" width="{width - left - 3 * SIDE:.0f}"'
    drawn = body(chart, lang)
    return f'{title}\n<svg {inside} height="{height(chart)}" overflow="visible">{drawn}</svg>'


def _key(names: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """The swatches in lines, and the height they take."""
    spots, x, y = [], SIDE, LINE
    for tone, name in names:
        room = 30 + LETTER * len(name)
        if x + room > WIDTH and x > SIDE:
            x, y = SIDE, y + LINE
        spots.append(
            f'<g class="{tone} fill"><circle cx="{x + 5:g}" cy="{y - 4}" r="5"/></g>'
            f'<text x="{x + 15:g}" y="{y}">{text(name)}</text>'
        )
        x += round(room)
    return "\n".join(spots), y + LINE if names else LINE
