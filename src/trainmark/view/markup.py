"""Pieces of GitHub-flavoured Markdown into which any text can be put without changing the page."""

from __future__ import annotations

import re

from trainmark.base.text import one_line, visible

# What begins with a digit in brackets are bounds, and without what a link has behind it nothing else.
# Between letters or digits an underscore is none of Markdown's.
BOUNDS = re.compile(r"\\\[(\d[^\[\]\\]*)\\\](?![(:])")
SPECIAL = re.compile(r"([\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def plain(text: str) -> str:
    """Text that reads as itself: no markup, no HTML, one line."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return BOUNDS.sub(r"[\1]", SPECIAL.sub(r"\\\1", escaped))


def code(text: str) -> str:
    """A code span; a bar is escaped because tables split before code is read."""
    inner = one_line(text).replace("|", "\\|")
    ticks = "`" * (_longest_run(inner) + 1)
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{ticks}{pad}{inner}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{visible(text).rstrip()}\n{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
