"""Bytes, seconds and bytes per second as people write them."""

from __future__ import annotations

import re
from math import isfinite

WRITTEN = re.compile(r"(\d{1,15})\s*([KMG]?)(?:i?B)?", re.IGNORECASE)
POWERS = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_bytes(text: str) -> int:
    """`8`, `64K`, `16M`: powers of 1,024, as message sizes are."""
    match = WRITTEN.fullmatch(text.strip())
    if not match or int(match[1]) == 0:
        raise ValueError(f"'{text}' is not a size; write bytes as in 8, 64K or 16M")
    return int(match[1]) << POWERS[match[2].upper()]


def bytes_words(size: int) -> str:
    """`8 B`, `64 KiB`; the largest unit that divides it."""
    for name, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power:,} {name}"
    return f"{size:,} B"


def seconds_words(seconds: float | None) -> str:
    """Three digits in the unit that fits: `16.2 µs`, `1.20 ms`."""
    return _scaled(seconds, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))


def rate_words(bytes_per_second: float | None) -> str:
    """Three digits in powers of ten, as links are sold: `11.6 GB/s`."""
    return _scaled(bytes_per_second, (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)))


def _scaled(value: float | None, units: tuple[tuple[str, float], ...]) -> str:
    if value is None or not isfinite(value):
        return "n/a"
    # A value that rounds up to a thousand belongs to the next unit.
    name, unit = next((each for each in units if value >= 0.9995 * each[1]), units[-1])
    scaled = value / unit
    return f"{scaled:,.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f} {name}"
