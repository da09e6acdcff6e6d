"""Tables of a Markdown page, each row with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterator


def rows(text: str) -> Iterator[tuple[dict[int, str], dict[str, str]]]:
    """Each row as its cells by column name, after the headings by level."""
    headings: dict[int, str] = {}
    header: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"(#+) +(.*)", line):
            level = len(match[1])
            headings = {each: title for each, title in headings.items() if each < level}
            headings[level] = match[2].strip()
        if not line.lstrip().startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not header:
            header = cells
        elif not set("".join(cells)) <= set("-: "):
            yield dict(headings), dict(zip(header, cells, strict=True))
