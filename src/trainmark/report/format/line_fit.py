"""Columns fitted to a line: which of them share it, how wide each is, and how long text is cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

GAP = "  "
INDENT = "    "
NARROWEST = 14  # enough for `NVIDIA H100…`
ELLIPSIS = "…"
NUMBER_AT_END = re.compile(r"[\d.,]+$")


def display_width(text: str) -> int:
    """Return the columns of a terminal that the text takes: two for a Chinese character."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def least_width(cells: Iterable[str]) -> int:
    """Return how narrow a column of text may become: numbers in it stay whole."""
    widths = [(display_width(cell), is_number(cell)) for cell in cells]
    return max((width if number else min(width, NARROWEST) for width, number in widths), default=0)


def is_number(text: str) -> bool:
    """Whether digits outweigh letters: `[6,130, 6,173]`, `12.5 ms`, a date; not `rank 3 on node-b`."""
    digits = sum(map(str.isdecimal, text))
    return digits > 0 and digits >= sum(map(str.isalpha, text))


def split(least: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of each line: as many as fit, the others on further lines, which are indented."""
    lines: list[list[int]] = [[]]
    room = width
    for column, needed in enumerate(least):
        if not needed:
            continue
        if lines[-1] and needed > room:
            lines.append([])
            room = width - len(INDENT)
        lines[-1].append(column)
        room -= needed + len(GAP)
    return lines


def fitted(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Narrow the widest columns until the line fits, none below its least width."""
    room = width - len(GAP) * (len(widths) - 1)
    narrowed = [max(needed, min(natural, room)) for natural, needed in zip(widths, least, strict=True)]
    while sum(narrowed) > room:
        spare = [column for column, needed in enumerate(least) if narrowed[column] > needed]
        if not spare:
            break
        narrowed[max(spare, key=narrowed.__getitem__)] -= 1
    return narrowed


def shortened(text: str, width: int) -> str:
    """Cut the text to the width, with an ellipsis; a number on the edge goes as a whole."""
    if display_width(text) <= width:
        return text
    end, room = 0, width - len(ELLIPSIS)
    while (room := room - _character_width(text[end])) >= 0:
        end += 1
    start = text[:end]
    if NUMBER_AT_END.match(text[end]):
        start = NUMBER_AT_END.sub("", start)
    return start.rstrip() + ELLIPSIS


def padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def _character_width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
