"""Times as logs print them."""

from __future__ import annotations

from datetime import datetime

DATED = "%Y-%m-%d %H:%M:%S.%f"
DATED_WITH_COMMA = "%Y-%m-%d %H:%M:%S,%f"
TIME_OF_DAY = "%H:%M:%S.%f"


def moment(text: str, clock: str = DATED) -> datetime | None:
    """None where the text is no such time."""
    try:
        return datetime.strptime(text, clock)
    except ValueError:
        return None


def seconds_between(begin: str, end: str, clock: str = DATED) -> float | None:
    """None where either is no time."""
    first, last = moment(begin, clock), moment(end, clock)
    return (last - first).total_seconds() if first and last else None
