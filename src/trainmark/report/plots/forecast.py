"""Measured, forecast and ideal throughput of one device by the number of devices, as one SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log2, log10

from trainmark.visible import one_line

INK, QUIET, RULE, PAPER = "#1c2126", "#5a636d", "#e3e1da", "#ffffff"
FORECAST, IDEAL = "#1f6fb2", "#8a929b"
WIDE = (960, 440)
SMALL = (320, 220)
LEFT, RIGHT, TOP, BOTTOM = 58, 28, 56, 44
LEGEND = 34
# Of a name in a small panel.
LONGEST = 48
LEAST_PIXELS_A_LETTER = 7


@dataclass(frozen=True)
class Point:
    """A throughput of all devices; `low` and `high` where it was forecast."""

    topology: str
    devices: int
    throughput: float
    low: float | None = None
    high: float | None = None

    @property
    def rate(self) -> float:
        return self.throughput / self.devices


@dataclass(frozen=True)
class Panel:
    """`measured` was known to the forecast, `checked` was not."""

    name: str
    unit: str
    measured: tuple[Point, ...]
    forecast: tuple[Point, ...]
    checked: tuple[Point, ...] = ()


def render(panels: Sequence[Panel]) -> str:
    """One panel fills the width; several stand beside each other, three a row."""
    width, height = WIDE if len(panels) == 1 else SMALL
    columns = WIDE[0] // width
    across, down = WIDE[0], LEGEND + height * ceil(len(panels) / columns)
    drawn = [_legend(any(panel.checked for panel in panels))]
    for place, panel in enumerate(panels):
        x, y = width * (place % columns), LEGEND + height * (place // columns)
        drawn.append(f'<g transform="translate({x} {y})">\n{_Drawing(panel, width, height).text()}\n</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" font-family="sans-serif"'
        f' font-size="12" fill="{INK}">\n<rect width="{across}" height="{down}" fill="{PAPER}"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def page(panels: Sequence[Panel]) -> str:
    """The same drawing as an HTML file, as wide as the window."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Forecast</title>\n'
        "<style>body { margin: 0 auto; max-width: 1100px } svg { width: 100%; height: auto }</style>\n"
        f"</head>\n<body>\n{render(panels)}</body>\n</html>\n"
    )


class _Drawing:
    def __init__(self, panel: Panel, width: int, height: int) -> None:
        self.panel = panel
        self.width, self.height = width, height
        self.small = (width, height) == SMALL
        points = (*panel.measured, *panel.checked, *panel.forecast)
        self.counts = sorted({point.devices for point in points})
        self.first, self.last = self.counts[0], max(self.counts[-1], 2 * self.counts[0])
        self.ideal = next((point.rate for point in panel.measured if point.devices == 1), None)
        highest = max(max(point.rate, (point.high or 0.0) / point.devices) for point in points)
        self.step = _step(highest)
        self.most = self.step * ceil(highest / self.step)

    def x(self, devices: float) -> float:
        room = self.width - LEFT - RIGHT
        return LEFT + room * log2(devices / self.first) / log2(self.last / self.first)

    def y(self, rate: float) -> float:
        return self.height - BOTTOM - (self.height - TOP - BOTTOM) * rate / self.most

    def text(self) -> str:
        parts = [self._title(), *self._axes(), *self._ideal(), *self._forecast(), *self._dots()]
        return "\n".join([*parts, *(() if self.small else self._shares())])

    def _title(self) -> str:
        name = one_line(self.panel.name)
        shown = name if not self.small or len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        return (
            f'<text x="12" y="{TOP - 30}" font-size="{11 if self.small else 14}" font-weight="bold">'
            f"<title>{escape(name)}</title>{escape(shown)}</text>"
        )

    def _axes(self) -> list[str]:
        bottom, right = self.y(0), self.width - RIGHT
        lines = [
            _label(12, TOP - 12, f"{self.panel.unit}/s a device", "start"),
            _label(right, bottom + 36, "devices", "end"),
        ]
        for tick in range(round(self.most / self.step) + 1):
            y = self.y(tick * self.step)
            lines.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>')
            lines.append(_label(LEFT - 8, y + 4, f"{tick * self.step:,.10g}", "end"))
        shown = float("-inf")
        for count in self.counts:
            if self.x(count) - shown >= LEAST_PIXELS_A_LETTER * len(f"{count:,}") + 6:
                shown = self.x(count)
                lines.append(_label(shown, bottom + 18, f"{count:,}"))
        return lines

    def _ideal(self) -> list[str]:
        if self.ideal is None:
            return []
        ends = f'x1="{self.x(self.first):.1f}" x2="{self.x(self.last):.1f}"'
        y = self.y(self.ideal)
        return [f'<line {ends} y1="{y:.1f}" y2="{y:.1f}" stroke="{IDEAL}" stroke-dasharray="5 4"/>']

    def _forecast(self) -> list[str]:
        """A line and its band, from the widest measured point on."""
        path = sorted(self.panel.forecast, key=lambda point: point.devices)
        known = [point for point in self.panel.measured if path and point.devices < path[0].devices]
        path = sorted(known, key=lambda point: point.devices)[-1:] + path
        if len(path) < 2:
            return []
        band = [self._at(point, point.high) for point in path]
        band += [self._at(point, point.low) for point in reversed(path)]
        middle = " ".join(self._at(point) for point in path)
        return [
            f'<polygon points="{" ".join(band)}" fill="{FORECAST}" fill-opacity="0.15"/>',
            f'<polyline points="{middle}" fill="none" stroke="{FORECAST}" stroke-width="2"/>',
        ]

    def _at(self, point: Point, throughput: float | None = None) -> str:
        rate = point.rate if throughput is None else throughput / point.devices
        return f"{self.x(point.devices):.1f},{self.y(rate):.1f}"

    def _dots(self) -> list[str]:
        styles = (
            (self.panel.forecast, f'r="3" fill="{FORECAST}"'),
            (self.panel.measured, f'r="3.5" fill="{INK}"'),
            (self.panel.checked, f'r="3.5" fill="{PAPER}" stroke="{INK}" stroke-width="1.5"'),
        )
        lines = []
        for points, style in styles:
            for point in points:
                x, y = self.x(point.devices), self.y(point.rate)
                tooltip = _text(f"{point.topology}: {point.throughput:,.0f} {self.panel.unit}/s")
                lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {style}><title>{tooltip}</title></circle>')
        return lines

    def _shares(self) -> list[str]:
        """Each forecast as a share of the ideal; the widest also as the throughput of all devices."""
        if not self.panel.forecast or not self.ideal:
            return []
        lines = []
        for point in self.panel.forecast:
            share = f"{100 * point.rate / self.ideal:.0f} %"
            lines.append(_label(self.x(point.devices), self.y(point.rate) - 10, share, "middle", FORECAST))
        last = max(self.panel.forecast, key=lambda point: point.devices)
        below = self.y((last.low or last.throughput) / last.devices) + 18
        caption = f"{last.topology}: {last.throughput:,.0f} {self.panel.unit}/s"
        return [*lines, _label(self.x(last.devices), below, caption, "end", FORECAST)]


def _legend(checked: bool) -> str:
    dash = f'<line x1="-12" x2="12" y1="-4" y2="-4" stroke="{IDEAL}" stroke-dasharray="5 4"/>'
    ring = f'<circle cx="0" cy="-4" r="3.5" fill="{PAPER}" stroke="{INK}" stroke-width="1.5"/>'
    band = (
        f'<rect x="-12" y="-10" width="24" height="12" fill="{FORECAST}" fill-opacity="0.15"/>'
        f'<line x1="-12" x2="12" y1="-4" y2="-4" stroke="{FORECAST}" stroke-width="2"/>'
    )
    marks = [(f'<circle cx="0" cy="-4" r="3.5" fill="{INK}"/>', "fitted on" if checked else "measured")]
    marks += [(ring, "published, not fitted on")] if checked else []
    marks += [(band, "forecast, 80 % interval"), (dash, "ideal")]
    spots, x = [], 24
    for mark, name in marks:
        spots.append(f'<g transform="translate({x} 22)">{mark}<text x="18">{name}</text></g>')
        x += 52 + 6 * len(name)
    return "\n".join(spots)


def _label(x: float, y: float, text: str, anchor: str = "middle", tone: str = QUIET) -> str:
    """With a rim of paper, so that it is read over a line."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" fill="{tone}"'
    return f'<text {place} stroke="{PAPER}" stroke-width="3" paint-order="stroke">{_text(text)}</text>'


def _step(most: float) -> float:
    """A round distance between lines that makes three to six of them."""
    power = 10.0 ** floor(log10(most))
    return next(power * part for part in (0.2, 0.5, 1, 2) if most / (power * part) <= 5)


def _text(text: str) -> str:
    return escape(one_line(text))
