"""Durations as people type them: `1h02min`, `20:04:48`, `33 min`, `3.5 hours`, `2 天`."""

from __future__ import annotations

import re

from trainmark.published.audit.report.number import LONGEST_CELL, Number, normal

CLOCK = re.compile(r"(\d{1,4}):([0-5]\d):([0-5]\d)(?:\.\d{1,6})?")
UNITS = {
    "d": 86400.0, "day": 86400.0, "天": 86400.0,
    "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "小时": 3600.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "分钟": 60.0, "分": 60.0,
    "s": 1.0, "sec": 1.0, "second": 1.0, "秒": 1.0,
    "ms": 1e-3, "毫秒": 1e-3,
}  # fmt: skip
UNIT = r"days?|天|hours?|hrs?|h|小时|minutes?|mins?|ms|毫秒|m|分钟|分|seconds?|secs?|s|秒"
PART = re.compile(rf"(\d{{1,7}}(?:\.\d{{1,4}})?) ?({UNIT})(?![a-z])", re.I | re.A)
WHOLE = re.compile(rf"(?:\d{{1,7}}(?:\.\d{{1,4}})? ?(?:{UNIT})[ ,]{{0,3}}){{1,4}}", re.I | re.A)
IN_HEAD = re.compile(rf"[(\[,/ -]({UNIT})[)\]. ]*$", re.I | re.A)


def parse_duration(text: str) -> Number | None:
    """The seconds that a cell names with its own units, or None."""
    if len(text) > LONGEST_CELL:
        return None
    plain = " ".join(normal(text).strip("*_`~≈ ").lower().split())
    if clock := CLOCK.fullmatch(plain):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return Number(3600.0 * hours + 60 * minutes + seconds, 0, "s", 1.0)
    if not WHOLE.fullmatch(plain):
        return None
    parts = [
        (float(count), len(count.partition(".")[2]), UNITS[_singular(unit)])
        for count, unit in PART.findall(plain)
    ]
    total = sum(count * unit for count, _, unit in parts)
    return Number(total, 0, "s", min(unit * 10.0**-decimals for _, decimals, unit in parts))


def seconds_in_head(head: str) -> float | None:
    """How many seconds the unit at the end of a head is: `Time to train (hours)`."""
    match = IN_HEAD.search(normal(head).strip("*_` ").lower())
    return UNITS[_singular(match[1])] if match else None


def _singular(unit: str) -> str:
    plain = unit.lower()
    return plain if plain in UNITS else plain.removesuffix("s")
