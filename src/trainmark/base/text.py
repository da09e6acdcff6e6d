"""Text as people read it: hidden characters made visible, and names in their natural order."""

from __future__ import annotations

import re

# C0 and C1 controls but tab and newline, zero-width and bidirectional controls, line and paragraph
# separators, the byte-order mark, and halves of surrogate pairs, which UTF-8 cannot carry at all.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every character that hides or reorders written as its escape: `\\x1b`, `\\u202e`."""
    # Printable to Python is no control, format or separator character but the space: most texts end here.
    if text.isprintable():
        return text
    return HIDDEN.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The visible text with runs of white space closed up."""
    if text.isprintable() and "  " not in text and text == text.strip():
        return text
    return " ".join(visible(text).split())


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


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
