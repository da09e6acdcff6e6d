"""The colours of a fabric's map: the bandwidth of a link beside the usual one of its like."""

from __future__ import annotations

from itertools import pairwise
from math import log2

INK, PAPER, UNKNOWN = "#1c2126", "#ffffff", "#e3e1da"
# By doublings, from half the usual to twice: vermilion and blue, which all eyes tell apart.
SCALE = ((-1.0, "#a83a08"), (-0.5, "#f0a468"), (0.0, "#f6f4ee"), (0.5, "#90bce2"), (1.0, "#1f5f99"))


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
