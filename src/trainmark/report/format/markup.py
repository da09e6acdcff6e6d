"""Pieces of GitHub-flavoured Markdown into which any text can be put without changing the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainmark.visible import one_line, visible

SPECIAL = re.compile(r"([\\`*_\[\]|~#$])")


def plain(text: str) -> str:
    """Text that reads as itself: no markup, no HTML, one line."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", escaped)


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


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: frozenset[int] = frozenset(),
    trusted: frozenset[int] = frozenset(),
) -> str:
    """A table; cells are escaped but for the `trusted` columns and the header, which already are Markdown."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    lines = [list(header), rule]
    lines += [[text if i in trusted else plain(text) for i, text in enumerate(row)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
