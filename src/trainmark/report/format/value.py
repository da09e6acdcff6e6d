"""Values of a trial's row as people read them, by the name of their column."""

from __future__ import annotations

import re
import time
from math import isfinite
from typing import Any

from trainmark.pages.number import GIB, duration, significant, throughput

TIME = re.compile(r"\b(created|started)\b")
BYTES = re.compile(r"_bytes\b")
SECONDS = re.compile(r"(\b|_)seconds\b|\btime2train\b")
EARLIEST_TIME = 1e9  # what is less is a difference of times
FEWEST_SEPARATED = 100_000  # a year or a batch keeps its four digits together
LEAST_PLAIN = 1e-4


def readable(name: str, value: Any) -> str:
    """Return one value of the column `name` for a terminal; JSON has it as it is."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if not isfinite(value):
        return str(value)
    if TIME.search(name) and value >= EARLIEST_TIME:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if BYTES.search(name) and value >= GIB / 1024:
        return f"{significant(value / GIB, 3)} GiB"
    if SECONDS.search(name):
        return duration(value)
    if isinstance(value, int) or value.is_integer():
        return f"{value:,.0f}" if abs(value) >= FEWEST_SEPARATED else f"{value:.0f}"
    return throughput(value) if abs(value) >= LEAST_PLAIN else f"{value:.4g}"
