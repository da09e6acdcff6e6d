"""Table of cells, rendered as lines of text or as Markdown; templates/table.html.j2 renders it as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.base.text import one_line
from trainmark.report.format.line_fit import (
    GAP,
    INDENT,
    display_width,
    fitted,
    least_width,
    padded,
    shortened,
    split,
)
from trainmark.report.format.markup import plain


@dataclass(frozen=True)
class Table:
    """Header and rows of cells; each rendering escapes them, and None is an empty cell.

    The columns `right` hold numbers. Header and cells of the columns `trusted` already are Markdown.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: frozenset[int] = frozenset()
    trusted: frozenset[int] = frozenset()

    def lines(self, width: int | None = None) -> list[str]:
        """Return aligned columns; one that is empty throughout takes no room, nor does an empty header.

        In a terminal of `width` columns, text is cut, and if that is not enough, the last columns go below.
        """
        rows = [list(map(_line, row)) for row in ([self.header] if self.header else []) + list(self.rows)]
        columns = list(zip(*rows, strict=True))
        natural = [max(map(display_width, column)) for column in columns]
        if width is None:
            width = sum(natural) + len(GAP) * len(natural)
        least = [
            natural[place] if place in self.right else least_width(column)
            for place, column in enumerate(columns)
        ]
        parts = []
        for number, places in enumerate(split(least, width)):
            indent = INDENT if number else ""
            widths = fitted(
                [natural[place] for place in places], [least[place] for place in places], width - len(indent)
            )
            parts.append((indent, list(zip(places, widths, strict=True))))
        lines = [[indent + self._joined(row, part) for indent, part in parts] for row in rows]
        return [line for first, *below in lines for line in (first, *filter(str.strip, below))]

    def _joined(self, row: Sequence[str], part: Sequence[tuple[int, int]]) -> str:
        cells = (padded(shortened(row[place], width), width, place in self.right) for place, width in part)
        return GAP.join(cells).rstrip()

    def markdown(self) -> str:
        rule = ["---:" if column in self.right else "---" for column in range(len(self.header))]
        marked = [
            [_text(cell) if column in self.trusted else plain(_text(cell)) for column, cell in enumerate(row)]
            for row in (self.header, *self.rows)
        ]
        return "\n".join("| " + " | ".join(row) + " |" for row in (marked[0], rule, *marked[1:]))


def _line(cell: object) -> str:
    """One line of visible text; leading spaces stay, because they indent a cell or set it apart."""
    text = _text(cell)
    return " " * (len(text) - len(text.lstrip(" "))) + one_line(text)


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)
