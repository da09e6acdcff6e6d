"""Axes of a chart: their range, where a value lies on them, and ticks at round values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from trainmark.base.text import one_line

# Room beyond the highest value, as a share of the axis.
AIR = 0.04
MOST_LOG_TICKS = 8
# Ticks closer than this share of the axis would run into each other.
CLOSEST_COUNTS = 0.06

Tick = tuple[float, str]


@dataclass(frozen=True)
class Axis:
    """A range with ticks; `rows` are names instead of a quantity, the first at the top."""

    low: float
    high: float
    ticks: tuple[Tick, ...]
    title: str = ""
    log: bool = False
    rows: bool = False

    def place(self, value: float | None) -> float | None:
        """Return where a value lies between the ends, 0 to 1; None where the axis has no place for it."""
        if value is None or not isfinite(value) or (self.log and value <= 0):
            return None
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def places(self, values: Iterable[float | None]) -> list[float | None]:
        """Return where many values lie."""
        if self.log:
            return [self.place(value) for value in values]
        low, span = self.low, self.high - self.low
        return [None if value is None or not isfinite(value) else (value - low) / span for value in values]

    @property
    def cut(self) -> bool:
        """Whether a linear axis leaves out zero, so that heights are no proportions."""
        return not self.log and not self.rows and (self.low > 0 or self.high < 0)


def linear(
    values: Iterable[float | None],
    title: str = "",
    suffix: str = "",
    bounds: tuple[float, float] | None = None,
    most: int = 7,
) -> Axis:
    """Return an axis from zero (or below) to just above the highest value, or with the given bounds."""
    known = [value for value in values if value is not None and isfinite(value)] or [0.0]
    low, high = bounds or (min(0.0, *known, 0.0), max(0.0, *known, 0.0))
    if high <= low:
        low, high = (low, low + 1) if low >= 0 else (low, -low)
    if bounds is None:
        air = AIR * (high - low)
        low, high = (low - air if low < 0 else low), (high + air if high > 0 else high)
    return Axis(
        low, high, tuple((tick, _text(tick) + suffix) for tick in round_ticks(low, high, most)), title
    )


def logarithmic(values: Iterable[float | None], title: str = "", suffix: str = "") -> Axis:
    """Return an axis over the positive values, with ticks at 1, 2, 5 times powers of ten."""
    known = [value for value in values if value is not None and isfinite(value) and value > 0] or [1.0, 10.0]
    low, high = min(known), max(known)
    air = (high / low) ** AIR if high > low else 1.5
    low, high = low / air, high * air
    ticks = log_ticks(low, high)
    return Axis(low, high, tuple((tick, _text(tick) + suffix) for tick in ticks), title, log=True)


def counts(values: Iterable[int], title: str = "", log: bool = False) -> Axis:
    """Return an axis with a tick at each count that has room; a linear one begins at zero."""
    known = sorted(set(values)) or [1]
    frame = logarithmic(known) if log else linear(known)
    ticks: list[int] = []
    for count in reversed(known):
        if not ticks or (frame.place(ticks[-1]) or 0) - (frame.place(count) or 0) >= CLOSEST_COUNTS:
            ticks.append(count)
    return Axis(frame.low, frame.high, tuple((tick, f"{tick:,}") for tick in reversed(ticks)), title, log)


def rows(names: Sequence[str]) -> Axis:
    """Return an axis of named rows, the first at the top."""
    ticks = tuple((float(row), one_line(name)) for row, name in enumerate(names))
    return Axis(len(names) - 0.5, -0.5, ticks, rows=True)


def columns(names: Sequence[str]) -> Axis:
    """Return an axis of named columns, the first at the left."""
    ticks = tuple((float(column), one_line(name)) for column, name in enumerate(names))
    return Axis(-0.5, len(names) - 0.5, ticks, rows=True)


def round_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return at most `most` multiples of 1, 2 or 5 times a power of ten between the ends."""
    power = 10.0 ** floor(log10((high - low) / most))
    step = next(power * part for part in (1, 2, 5, 10, 20) if (high - low) / (power * part) <= most - 1)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten; over many decades the powers alone, thinned."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for parts, stride in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
        ticks = [float(f"{part}e{decade}") for decade in decades[::stride] for part in parts]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= MOST_LOG_TICKS:
            break
    return inside if len(inside) > 1 else [tick for tick in round_ticks(low, high, 5) if tick > 0]


def _text(tick: float) -> str:
    return f"{tick:,.10g}" if abs(tick) >= 1e-4 or tick == 0 else f"{tick:g}"
