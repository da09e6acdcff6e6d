"""Table of cells that renders itself by the renderers of view; for what is not yet a page of blocks."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.view import blocks, markdown, terminal
from trainmark.view.blocks import Span


@dataclass(frozen=True)
class Table(blocks.Table):
    """Header and cells of the columns `trusted` already are Markdown."""

    trusted: frozenset[int] = frozenset()

    def lines(self, width: int | None = None) -> list[str]:
        return terminal.table(self, width)

    def markdown(self) -> str:
        header, *rows = [
            [Span(str(cell), "markdown") if place in self.trusted else cell for place, cell in enumerate(row)]
            for row in (self.header, *self.rows)
        ]
        return markdown.table(blocks.Table(header, rows, self.right))
