"""Sentences broken to the width of a terminal, also those in Chinese, which has no spaces."""

from __future__ import annotations

import re

from trainmark.base.text import one_line
from trainmark.report.format.line_fit import display_width

# A wide character may stand at the end of a line, but punctuation may not begin one.
PIECES = re.compile(
    r"[^\s\u2e80-\uffef]+[\u3001\u3002\uff00-\uffef]*|[\u2e80-\uffef][\u3001\u3002\uff00-\uffef]*|\s+"
)


def wrapped(text: str, width: int | None = None, first: str = "", later: str = "") -> list[str]:
    """Break one sentence into lines; a piece that is longer than the line stays whole."""
    line, empty = first, True
    if width is None:
        return [first + one_line(text)]
    lines = []
    for piece in PIECES.findall(one_line(text)):
        if not empty and not piece.isspace() and display_width(line + piece) > width:
            lines.append(line.rstrip())
            line = later
        elif empty and piece.isspace():
            continue
        line += piece
        empty = False
    return [*lines, line.rstrip()]
