"""How numbers look in a report: enough digits to compare, never more than the figure carries."""

from __future__ import annotations

from functools import lru_cache
from math import floor, isfinite, log10

from trainmark.measure.figure import Interval

MISSING = "n/a"
USUAL_CONFIDENCE = 0.95
GIB, MIB = 2**30, 2**20


def counted(count: int, noun: str) -> str:
    """`1 file`, `1,234 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def significant(value: float | None, digits: int = 4) -> str:
    """At least `digits` significant digits, thousands separated, the whole part never rounded away."""
    if value is None or not isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    decimals = digits - 1 - floor(log10(abs(value)))
    return f"{value:,.{decimals}f}" if decimals > 0 else f"{value:,.0f}"


def throughput(value: float | None) -> str:
    """Four significant digits, and one decimal more from a thousand up, where the bounds show none."""
    return significant(value, 5 if value is not None and abs(value) >= 1000 else 4)


def bounds(low: float | None, high: float | None) -> str:
    """`[1,234, 1,250]`."""
    if low is None or high is None:
        return MISSING
    return f"[{significant(low)}, {significant(high)}]"


def interval(value: Interval | None) -> str:
    """The bounds, and the confidence where it falls short of 95 %."""
    return MISSING if value is None else bounds(value.low, value.high) + shortfall(value)


def ratio_interval(value: Interval | None) -> str:
    """The bounds of a quotient, to two decimals like the quotient itself."""
    return MISSING if value is None else f"[{value.low:.2f}, {value.high:.2f}]{shortfall(value)}"


def percent_interval(value: Interval | None) -> str:
    """The bounds of a share, in per cent and to one decimal like the share itself."""
    if value is None:
        return MISSING
    return f"[{100 * value.low:.1f}, {100 * value.high:.1f}]{shortfall(value)}"


def shortfall(value: Interval) -> str:
    """` (93.8 %)` where the interval carries less than the usual confidence, otherwise nothing."""
    return _shortfall(value.confidence)


@lru_cache(maxsize=256)
def _shortfall(confidence: float) -> str:
    return f" ({percent(confidence)})" if confidence < USUAL_CONFIDENCE else ""


def ratio(value: float | None) -> str:
    return MISSING if value is None or not isfinite(value) else f"{value:.2f}"


def percent(value: float | None, decimals: int = 1) -> str:
    if value is None or not isfinite(value):
        return MISSING
    rounded = round(100 * value, decimals) + 0.0  # what rounds to nothing has no sign
    return f"{rounded:.{decimals}f} %"


def gibibytes(value: float | None) -> str:
    return MISSING if value is None or not isfinite(value) else f"{value / GIB:,.1f}"


def joules(value: float | None) -> str:
    """Return an energy in joules, in thousandths or millionths of it where it is less than one."""
    if value is None or not isfinite(value):
        return MISSING
    for unit, scale in (("J", 1), ("mJ", 1e3)):
        if value * scale >= 1:
            return f"{significant(value * scale, 3)} {unit}"
    return f"{significant(value * 1e6, 3)} µJ"


def duration(seconds: float | None) -> str:
    """Milliseconds below one second, seconds above."""
    if seconds is None or not isfinite(seconds):
        return MISSING
    return f"{significant(seconds * 1000, 3)} ms" if seconds < 1 else f"{significant(seconds, 3)} s"


def clock(seconds: float | None) -> str:
    """A duration to read at a glance: `42.1 s`, `12:05`, `1:12:04`."""
    if seconds is None or not isfinite(seconds):
        return MISSING
    if seconds < 60:
        return duration(seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def clock_interval(value: Interval | None) -> str:
    """`[11:58, 12:20]`."""
    return MISSING if value is None else f"[{clock(value.low)}, {clock(value.high)}]{shortfall(value)}"
