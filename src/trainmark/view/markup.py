"""Pieces of GitHub-flavoured Markdown into which any text can be put without changing the page."""

from __future__ import annotations

import re

from trainmark.base.text import one_line, visible

# What Markdown would take for its own; underscores between letters or digits it leaves alone.
SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")
# Figures in brackets are no link without what a link has behind them.
BOUNDS = re.compile(r"\\\[([−\d][^\[\]\\]*)\\\](?![(:])")


def plain(text: str) -> str:
    """Text that reads as itself: no markup, no HTML, one line."""
    html = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = SPECIAL.sub(lambda match: "".join(f"\\{character}" for character in match[0]), html)
    return BOUNDS.sub(r"[\1]", escaped)


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
