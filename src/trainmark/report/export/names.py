"""Names of files and folders, made from text that a log or a suite may have chosen."""

from __future__ import annotations

import re

from trainmark.base.text import one_line

LONGEST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")


def safe_name(text: object) -> str:
    """One path component: no separator, no control character, not hidden, never empty."""
    return _UNSAFE.sub("-", str(text)).strip(".-")[:LONGEST] or "unnamed"


def untaken(name: str, taken: set[str]) -> str:
    """The name, or the first of `name-2`, `name-3`, … that is not taken yet; takes it."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free


def plain(value: object) -> str:
    """A value as text that stays on its line."""
    return one_line(str(value))
