"""Text from logs and shells may hold characters that hide, reorder or rewrite what stands beside them."""

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
