"""The marks of a panel as SVG elements, one function a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import inf
from typing import Any

from trainmark.base.text import one_line
from trainmark.view.chart.axis import Axis
from trainmark.view.chart.model import (
    Band,
    Bars,
    Dots,
    Label,
    Line,
    Mark,
    Numbers,
    Panel,
    Rule,
    Shade,
    Whiskers,
)

# The stretched SVG counts half pixels of a usual width; its heights are half pixels exactly.
WIDTH = 2000
HALVES = 2
LONGEST_TEXT = 160
# Of dots by their shape; all others are circles.
ELEMENTS = {"tick": "line", "square": "rect"}


def drawn(x: Axis, panel: Panel) -> Iterator[str]:
    for mark in panel.marks:
        inside = DRAWING[type(mark)](mark, _Place(x, panel))
        if inside:
            yield f"<g{_look(mark)}>{inside}</g>"


def _paint(mark: Mark) -> str:
    """How the colour of a mark is used."""
    if isinstance(mark, Dots):
        return {"ring": " ring", "tick": " stroke"}.get(mark.shape, " fill")
    if isinstance(mark, (Whiskers, Rule)):
        return " stroke"
    return "" if isinstance(mark, Line) else " fill"


class _Place:
    """Where values lie in a panel."""

    def __init__(self, x: Axis, panel: Panel) -> None:
        self.x_axis, self.y_axis, self.height = x, panel.y, panel.height

    def x(self, value: float | None) -> str | None:
        return self.across([value])[0]

    def y(self, value: float | None) -> str | None:
        return self.down([value])[0]

    def bound(self, value: float | None) -> str | None:
        return self.bounds([value])[0]

    def across(self, values: Numbers) -> list[str | None]:
        """Return the horizontal place of each value, in per cent."""
        return [
            None if share is None else f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"
            for share in self.x_axis.places(values)
        ]

    def down(self, values: Numbers) -> list[str | None]:
        """Return the height of each value, in pixels; None also for what lies outside the panel."""
        return [
            _pixels(self.height * (1 - share)) if share is not None and -1e-9 <= share <= 1 + 1e-9 else None
            for share in self.y_axis.places(values)
        ]

    def bounds(self, values: Numbers) -> list[str | None]:
        """Like `down`, but what lies outside is moved to the edge."""
        return [
            None if share is None else _pixels(self.height * (1 - min(1.0, max(0.0, share))))
            for share in self.y_axis.places(values)
        ]

    def halves(self, x: float | None, y: float | None) -> tuple[int, int] | None:
        across, up = self.x_axis.place(x), self.y_axis.place(y)
        if across is None or up is None:
            return None
        return round(WIDTH * across), round(HALVES * self.height * (1 - min(3.0, max(-2.0, up))))

    def stretched(self, inside: str) -> str:
        box = f'viewBox="0 0 {WIDTH} {HALVES * self.height}" preserveAspectRatio="none"'
        return f'<svg {box} width="100%" height="{self.height}">{inside}</svg>'


def _line(mark: Line, place: _Place) -> str:
    path = " ".join(_path(run) for run in _runs(mark, place))
    if not path:
        return ""
    tip = f' data-tip="{_text(mark.tip)}"' if mark.tip else ""
    name = f' data-name="{_text(mark.name)}"' if mark.name and mark.tip else ""
    dash = ' stroke-dasharray="5 4"' if mark.dash else ""
    return place.stretched(f'<path class="line" stroke-width="{mark.width:g}"{dash}{tip}{name} d="{path}"/>')


def _runs(mark: Line, place: _Place) -> Iterator[list[tuple[int, int]]]:
    """Yield the unbroken stretches of a line, thinned before they are placed, which takes longer."""
    for stretch in _unbroken(mark, 0.0 if place.y_axis.log else -inf):
        thinned = [stretch[index] for index in extremes([y for _, y in stretch], mark.buckets)]
        points = [point for x, y in thinned if (point := place.halves(x, y)) is not None]
        if points:
            yield straightened(points)


def _unbroken(mark: Line, above: float) -> Iterator[list[tuple[float, float]]]:
    run: list[tuple[float, float]] = []
    for x, y in zip(mark.x, mark.y, strict=True):
        if x is not None and y is not None and above < y < inf:
            run.append((x, y))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _path(points: list[tuple[int, int]]) -> str:
    """The first point and then steps, which are shorter to write than places."""
    steps = [(x - a, y - b) for (a, b), (x, y) in pairwise(points)]
    return (
        f"M{points[0][0]} {points[0][1]}"
        + ("l" if steps else "h0")
        + " ".join(f"{x} {y}".replace(" -", "-") for x, y in steps).replace(" -", "-")
    )


def _dots(mark: Dots, place: _Place) -> str:
    element = ELEMENTS.get(mark.shape, "circle")
    spots = [
        None if x is None or y is None else f"<{element} {_spot(mark, x, y)}{rest}"
        for x, y, rest in zip(place.across(mark.x), place.down(mark.y), _rests(mark, element), strict=True)
    ]
    if mark.links:
        links = _escaped(mark.links)
        pairs = zip(links, spots, strict=True)
        spots = [f'<a href="{link}">{spot}</a>' if link and spot else spot for link, spot in pairs]
    return "".join(filter(None, spots))


def _rests(mark: Dots, element: str) -> list[str]:
    """Return what follows the place of each dot: the row that it refers to, or its title, and its end."""
    if mark.references:
        return [f' data-row="{row}"/>' for row in mark.references]
    named = [f"{mark.name}: {text}" if mark.name and text else text for text in mark.texts]
    titles = _escaped([_shortened(text) for text in named])
    rests = [f"><title>{title}</title></{element}>" if title else "/>" for title in titles]
    return rests or ["/>"] * len(mark.x)


def _spot(mark: Dots, x: str, y: str) -> str:
    radius = mark.radius
    if mark.shape == "tick":
        ends = float(y) - radius, float(y) + radius
        return f'stroke-width="2" x1="{x}" x2="{x}" y1="{ends[0]:g}" y2="{ends[1]:g}"'
    if mark.shape == "square":
        # Its group is moved by half a side.
        return f'x="{x}" y="{y}" width="{2 * radius:g}" height="{2 * radius:g}"'
    return f'cx="{x}" cy="{y}" r="{radius:g}"'


def _bars(mark: Bars, place: _Place) -> str:
    bars, zero = [], place.bound(0.0)
    for x, y, name in zip(mark.x, mark.y, mark.texts or [""] * len(mark.x), strict=True):
        left, right = (
            place.x_axis.place(None if x is None else x - mark.width / 2),
            place.x_axis.place(None if x is None else x + mark.width / 2),
        )
        top = place.bound(y)
        if left is None or right is None or top is None or zero is None:
            continue
        box = f'x="{100 * left:.2f}%" width="{100 * (right - left):.2f}%"'
        tall = f'y="{top}" height="{_pixels(float(zero) - float(top))}"'
        bars.append(f"<rect {box} {tall}><title>{_titled(mark.name, name)}</title></rect>")
    return "".join(bars)


def _whiskers(mark: Whiskers, place: _Place) -> str:
    start = f'<line stroke-width="{mark.width:g}"'
    if mark.flat:
        places = zip(place.down(mark.at), place.across(mark.low), place.across(mark.high), strict=True)
        lines = [
            f'{start} x1="{low}" x2="{high}" y1="{at}" y2="{at}"/>'
            for at, low, high in places
            if at is not None and low is not None and high is not None
        ]
    else:
        places = zip(place.across(mark.at), place.bounds(mark.low), place.bounds(mark.high), strict=True)
        lines = [
            f'{start} x1="{at}" x2="{at}" y1="{low}" y2="{high}"/>'
            for at, low, high in places
            if at is not None and low is not None and high is not None
        ]
    return "".join(lines)


def _band(mark: Band, place: _Place) -> str:
    sides = [
        [place.halves(x, y) for x, y in zip(mark.x, values, strict=True)] for values in (mark.low, mark.high)
    ]
    corners = [point for point in (*sides[0], *reversed(sides[1])) if point is not None]
    path = " ".join(f"{x},{y}" for x, y in corners)
    return place.stretched(f'<polygon points="{path}"/>') if corners else ""


def _shade(mark: Shade, place: _Place) -> str:
    start, stop = (place.x_axis.place(value) or 0.0 for value in (mark.start, mark.stop))
    box = f'x="{100 * start:.2f}%" width="{100 * (stop - start):.2f}%"'
    return f'<rect {box} height="{place.height}"/>'


def _rule(mark: Rule, place: _Place) -> str:
    y = place.y(mark.y)
    if y is None:
        return ""
    line = f'<line stroke-dasharray="6 4" x2="100%" y1="{y}" y2="{y}"/>'
    return line + (
        f'<text class="over" x="4" y="{float(y) - 5:g}">{_text(mark.name)}</text>' if mark.name else ""
    )


def _label(mark: Label, place: _Place) -> str:
    x, y = place.x(mark.x), place.bound(mark.y)
    if x is None or y is None:
        return ""
    shift = f' dx="{mark.shift:g}"' if mark.shift else ""
    where = f'x="{x}" y="{float(y) - mark.rise:g}"{shift} text-anchor="{mark.anchor}"'
    return f'<text class="over" {where}>{_text(mark.text)}</text>'


DRAWING: dict[type[Mark], Callable[[Any, _Place], str]] = {
    Line: _line,
    Dots: _dots,
    Bars: _bars,
    Whiskers: _whiskers,
    Band: _band,
    Shade: _shade,
    Rule: _rule,
    Label: _label,
}


def _look(mark: Mark) -> str:
    series = f' data-series="{_text(mark.series)}"' if mark.series else ""
    pale = f' opacity="{mark.opacity:g}"' if mark.opacity != 1 else ""
    moved = ""
    if isinstance(mark, Dots) and mark.shape == "square":
        moved = f' transform="translate({-mark.radius:g} {-mark.radius:g})"'
    return f' class="{mark.tone}{_paint(mark)}{"" if mark.shown else " off"}"{series}{pale}{moved}'


def _titled(name: str, text: str) -> str:
    return _text(f"{name}: {text}" if name else text)


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(_shortened(text))


def _shortened(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 1] + "…"


def _escaped(lines: Sequence[str]) -> list[str]:
    """Escape many lines at once, which is much faster than one by one."""
    escaped = escape("\n".join(lines)).split("\n")
    return escaped if len(escaped) == len(lines) else [escape(line) for line in lines]


def extremes(values: Sequence[float], buckets: int) -> list[int]:
    """Return the indices of the first, the last, and each bucket's lowest and highest value, in order."""
    count = len(values)
    if count <= 2 * buckets:
        return list(range(count))
    chosen = {0, count - 1}
    for bucket in range(buckets):
        start = bucket * count // buckets
        stretch = values[start : (bucket + 1) * count // buckets]
        chosen |= {start + stretch.index(min(stretch)), start + stretch.index(max(stretch))}
    return sorted(chosen)


def straightened(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out points that repeat the one before or lie inside a level or an upright stretch."""
    corners: list[tuple[int, int]] = []
    for point in points:
        if corners and point == corners[-1]:
            continue
        if len(corners) > 1 and _between(corners[-2], corners[-1], point):
            corners[-1] = point
        else:
            corners.append(point)
    return corners


def _between(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    level = first[1] == middle[1] == last[1] and first[0] <= middle[0] <= last[0]
    upright = first[0] == middle[0] == last[0] and (middle[1] - first[1]) * (last[1] - middle[1]) > 0
    return level or upright
