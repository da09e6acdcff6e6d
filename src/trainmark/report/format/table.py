"""Table of cells, rendered as lines of text or as Markdown; templates/table.html.j2 renders it as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.report.format.markup import plain
from trainmark.visible import one_line


@dataclass(frozen=True)
class Table:
    """Header and rows of cells; each rendering escapes them, and None is an empty cell.

    The columns `right` hold numbers. Header and cells of the columns `trusted` already are Markdown.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    right: frozenset[int] = frozenset()
    trusted: frozenset[int] = frozenset()

    def lines(self) -> list[str]:
        """Columns two spaces apart; one that is empty throughout takes no room, nor does an empty header."""
        rows = [list(map(_line, row)) for row in ([self.header] if self.header else []) + list(self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                cell.rjust(width) if column in self.right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
                if width
            ).rstrip()
            for row in rows
        ]

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
