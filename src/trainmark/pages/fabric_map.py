"""The fabric as one SVG: a place for each pair, coloured by bandwidth beside the usual, slow ones framed."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import log2

from trainmark.base.text import one_line
from trainmark.measure.fabric import (
    LEAST_BANDWIDTH_SHARE,
    FabricMeasurement,
    Link,
    SlowPart,
    concerns,
    slow_parts,
)
from trainmark.measure.quantity import rate_words, seconds_words
from trainmark.view.catalogue import Lang, localized
from trainmark.view.message import Message, _, _n, joined

INK, PAPER, UNKNOWN = "#1c2126", "#ffffff", "#e3e1da"
# By doublings, from half the usual to twice: vermilion and blue, which all eyes tell apart.
SCALE = ((-1.0, "#a83a08"), (-0.5, "#f0a468"), (0.0, "#f6f4ee"), (0.5, "#90bce2"), (1.0, "#1f5f99"))
MUTED = "#5a636d"
BOLD = ' font-weight="700"'
MOST_NUMBERED = 16
MOST_NAMED = 48
MOST_SENTENCES = 8
LONGEST_NAME, LONGEST_LINE = 16, 130
LETTER = 7.3  # pixels, the width of one at size 12
MARGIN, HEAD, LINE = 28, 92, 20
LEGEND = 210


@dataclass(frozen=True)
class Layout:
    """Where things stand, in pixels; the lower triangle leaves the upper right corner to the legend."""

    names: tuple[str, ...]
    first: int
    side: int
    left: float

    @property
    def rows(self) -> int:
        return len(self.names) - self.first

    @property
    def bottom(self) -> float:
        return HEAD + self.rows * self.side

    @property
    def slanted(self) -> bool:
        return max(map(len, self.names)) * LETTER > self.side - 6

    @property
    def foot(self) -> float:
        """Under the names of the columns."""
        depth = max(map(len, self.names)) * LETTER * 0.75 if self.slanted and self.named else 0
        return self.bottom + depth + 2 * LINE

    @property
    def named(self) -> bool:
        return len(self.names) <= MOST_NAMED

    @property
    def width(self) -> float:
        return max(
            self.left + self.rows * self.side + MARGIN, self.left + 2 * self.side + LEGEND + MARGIN, 760
        )


def render(fabric: FabricMeasurement, lang: Lang = "en") -> str:
    shown, sentences = grid(fabric), localized(_sentences(fabric), lang)
    layout = laid_out(shown)
    width, height = layout.width, layout.foot + LINE * len(sentences) + MARGIN
    title = localized(shown.title, lang)
    parts = [
        f'<text x="{MARGIN}" y="40" font-size="20" font-weight="600">{title}</text>',
        f'<text x="{MARGIN}" y="63" fill="{MUTED}">{_text(localized(described(fabric), lang))}</text>',
        *(
            _cell(shown, at, layout, lang)
            for at in sorted(shown.cells, key=lambda at: bool(shown.cells[at].slow))
        ),
        *_names(layout),
        *_legend(layout, any(cell.slow for cell in shown.cells.values()), lang),
        *(
            _label(_cut(text, LONGEST_LINE), MARGIN, layout.foot + LINE * place)
            for place, text in enumerate(sentences, 1)
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" class="fabric" role="img"'
        f' aria-label="{title}" font-family="system-ui, sans-serif" font-size="12" fill="{INK}"'
        ' style="max-width: 100%; height: auto">\n'
        f'<rect class="paper" width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _sentences(fabric: FabricMeasurement) -> list[Message]:
    sentences = verdicts(slow_parts(fabric.links))
    more = len(sentences) - MOST_SENTENCES
    return sentences if more <= 0 else [*sentences[:MOST_SENTENCES], _("And {more} more.", more=more)]


def laid_out(shown: Grid) -> Layout:
    count = len(shown.names)
    side = 90 if count <= 8 else 70 if count <= MOST_NUMBERED else max(5, 760 // count)
    names = tuple(_cut(name, LONGEST_NAME) for name in shown.names)
    # Without a diagonal the first row and the last column would be empty.
    first = 0 if any(row == column for row, column in shown.cells) else 1
    return Layout(names, first, side, MARGIN + max(map(len, names)) * LETTER + 10)


def _cell(shown: Grid, at: tuple[int, int], layout: Layout, lang: Lang) -> str:
    (row, column), cell, side = at, shown.cells[at], layout.side
    x, y = layout.left + column * side, HEAD + (row - layout.first) * side
    colour = fill(cell.share)
    names = shown.names[row] if row == column else f"{shown.names[column]} – {shown.names[row]}"
    slow = [localized(slow_words(cell.slow), lang)] if cell.slow else []
    figures = ", ".join([rate_words(cell.bytes_per_second), seconds_words(cell.latency_seconds), *slow])
    tooltip = f"{names}: {figures}"
    gap, thick = (1, 3) if side > 12 else (0.25, 1.5)
    frame = f' stroke="{INK}" stroke-width="{thick}"' if cell.slow else ""
    box = _box(x + gap, y + gap, side - 2 * gap, side - 2 * gap, f'fill="{colour}"{frame}')
    numbers = _numbers(cell, x + side / 2, y + side / 2, ink_on(colour)) if _numbered(shown) else ""
    return f"<g><title>{_text(tooltip)}</title>{box}{numbers}</g>"


def _numbers(cell: Cell, x: float, y: float, ink: str) -> str:
    """Bandwidth over latency; of a slow link the figure that is slow is the bold one."""
    figures = (
        ("bandwidth", rate_words(cell.bytes_per_second), y - 3),
        ("latency", seconds_words(cell.latency_seconds), y + 14),
    )
    return "".join(
        _label(
            text, x, height, "middle", f' font-size="11.5" fill="{ink}"{BOLD if figure in cell.slow else ""}'
        )
        for figure, text, height in figures
    )


def _names(layout: Layout) -> Iterator[str]:
    if not layout.named:
        return
    for place, name in enumerate(layout.names):
        if place >= layout.first:
            y = HEAD + (place - layout.first + 0.5) * layout.side + 4
            yield _label(name, layout.left - 8, y, "end")
        if place < layout.rows:
            x, y = layout.left + (place + 0.5) * layout.side, layout.bottom + 18
            if layout.slanted:
                yield _label(name, x + 4, y, "end", f' transform="rotate(-45 {x:.1f} {y - 4:.1f})"')
            else:
                yield _label(name, x, y, "middle")


def _legend(layout: Layout, any_slow: bool, lang: Lang) -> Iterator[str]:
    left, top = layout.width - MARGIN - LEGEND, HEAD + 12
    stops = "".join(f'<stop offset="{(at + 1) / 2}" stop-color="{colour}"/>' for at, colour in SCALE)
    yield f'<defs><linearGradient id="shares">{stops}</linearGradient></defs>'
    yield _label(localized(_("Bandwidth beside the median"), lang), left, top, more=BOLD)
    yield _box(left, top + 10, LEGEND, 12, 'fill="url(#shares)"')
    for at, text, anchor in (
        (0.0, _("half"), "start"),
        (0.5, _("median"), "middle"),
        (1.0, _("twice"), "end"),
    ):
        yield _label(localized(text, lang), left + at * LEGEND, top + 38, anchor, f' fill="{MUTED}"')
    if layout.first == 0:
        yield _label(localized(_("on the diagonal: inside a node"), lang), left, top + 64)
        top += 26
    if any_slow:
        yield _box(
            left + 1.5,
            top + 56,
            15,
            15,
            f'fill="{fill(LEAST_BANDWIDTH_SHARE)}" stroke="{INK}" stroke-width="3"',
        )
        yield _label(localized(_("slow beside comparable links"), lang), left + 26, top + 68)


def _label(text: str, x: float, y: float, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{_text(text)}</text>'


def _box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _numbered(shown: Grid) -> bool:
    return len(shown.names) <= MOST_NUMBERED


def _cut(text: str, longest: int) -> str:
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _text(text: str) -> str:
    return escape(one_line(text))


@dataclass(frozen=True)
class Cell:
    """The medians over the links of one place; `share` is its bandwidth over the usual one of its like."""

    bytes_per_second: float | None
    latency_seconds: float
    share: float | None
    slow: frozenset[str]


@dataclass(frozen=True)
class Grid:
    """`cells` by row and column, the column never after the row; on the diagonal what lies inside a node."""

    title: Message
    names: tuple[str, ...]
    cells: dict[tuple[int, int], Cell]


def grid(fabric: FabricMeasurement) -> Grid:
    nodes = tuple(dict.fromkeys(fabric.nodes))
    if len(nodes) > 1:
        order = {name: place for place, name in enumerate(nodes)}
        return Grid(
            _("Bandwidth and latency between nodes"),
            nodes,
            _cells(fabric, [order[node] for node in fabric.nodes]),
        )
    ranks = range(len(fabric.nodes))
    return Grid(_("Bandwidth and latency between ranks"), tuple(map(str, ranks)), _cells(fabric, list(ranks)))


def _cells(fabric: FabricMeasurement, place: list[int]) -> dict[tuple[int, int], Cell]:
    """`place` has the row of each rank."""
    links_by_cell: dict[tuple[int, int], list[Link]] = defaultdict(list)
    for link in fabric.links:
        first, second = (place[rank] for rank in link.ranks)
        links_by_cell[max(first, second), min(first, second)].append(link)
    rates = {at: _median_rate(links) for at, links in links_by_cell.items()}
    usual = {
        inside: statistics.median(known)
        for inside in (True, False)
        if (known := [rate for (row, column), rate in rates.items() if rate and (row == column) == inside])
    }
    slow = slow_parts(fabric.links)
    return {
        (row, column): Cell(
            bytes_per_second=(rate := rates[row, column]),
            latency_seconds=statistics.median(link.latency.seconds for link in links),
            share=rate / usual[row == column] if rate else None,
            slow=frozenset(each.figure for each in slow for link in links if concerns(each, link)),
        )
        for (row, column), links in links_by_cell.items()
    }


def _median_rate(links: list[Link]) -> float | None:
    rates = [rate for link in links if (rate := link.bytes_per_second)]
    return statistics.median(rates) if rates else None


def fill(share: float | None) -> str:
    """Of the usual bandwidth; what is below half or above twice looks like half or twice."""
    if not share:
        return UNKNOWN
    at = min(1.0, max(-1.0, log2(share)))
    (low, before), (high, after) = next(pair for pair in pairwise(SCALE) if at <= pair[1][0])
    part = (at - low) / (high - low)
    mixed = (
        round(one + part * (other - one))
        for one, other in zip(_channels(before), _channels(after), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink_on(colour: str) -> str:
    """Dark or light, whichever has the better contrast (WCAG's relative luminance)."""
    linear = [
        channel / 255 / 12.92 if channel <= 10 else ((channel / 255 + 0.055) / 1.055) ** 2.4
        for channel in _channels(colour)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return INK if luminance > 0.18 else PAPER


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def figure_name(figure: str) -> Message:
    return _("latency") if figure == "latency" else _("bandwidth")


def slow_words(figures: frozenset[str]) -> Message:
    return _("slow: {figures}", figures=joined([figure_name(name) for name in sorted(figures)], _(", ")))


def described(fabric: FabricMeasurement) -> Message:
    return _(
        "{where}, {device} ({backend}), {mode}, {taken}",
        where=place_words(len(fabric.nodes), len(set(fabric.nodes))),
        device=fabric.device,
        backend=fabric.backend,
        mode=_("pairs of a round together") if fabric.together else _("one pair at a time"),
        taken=fabric.taken,
    )


def place_words(ranks: int, nodes: int) -> Message:
    return _n(nodes, "{ranks} ranks on 1 node", "{ranks} ranks on {count} nodes", ranks=ranks)


def verdicts(slow: Sequence[SlowPart]) -> list[Message]:
    messages = [_("Slow: {slow}.", slow=each.message) for each in slow]
    return messages or [_("No link is slow beside comparable ones.")]
