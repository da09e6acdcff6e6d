"""The order in which people read names: `b64` before `b1024`, `node2` before `node10`."""

from __future__ import annotations

import re

DIGITS = re.compile(r"([0-9]+)")


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key under which runs of digits compare as the numbers that they are."""
    parts = DIGITS.split(text)
    # Words and numbers alternate, so that a word is only ever compared with a word; of two numbers without
    # leading zeros the longer one is the larger, however many digits they have.
    return tuple((0, part) if place % 2 == 0 else _number(part) for place, part in enumerate(parts))


def _number(digits: str) -> tuple[int, str]:
    significant = digits.lstrip("0")
    return len(significant), significant
