"""HTML as the audit reads it: headings, prose, code and tables, with their lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from trainmark.audit.tables import ReportTable, TableCell, make_table

HEADINGS = {f"h{level}": level for level in range(1, 7)}
CODE = {"pre", "textarea"}
UNREAD = {"script", "style", "template"}
BLOCKS = {"p", "div", "li", "ul", "ol", "br", "section", "article", "blockquote", "dd", "dt", "figcaption"}
WIDEST_SPAN = 64


@dataclass
class OpenTable:
    """A table while it is read; cells that span rows wait in `below` for the rows that they reach."""

    rows: list[list[TableCell]] = field(default_factory=list)
    below: dict[int, tuple[int, TableCell]] = field(default_factory=dict)
    spans: tuple[int, int] = (1, 1)


class PageReader(HTMLParser):
    """Collects pieces in order: ("heading", level, line, text), ("prose", …), ("code", …), and tables."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[tuple[str, int, int, str]] = []
        self.tables: list[ReportTable] = []
        self._text: list[str] = []
        self._line = 1
        self._unread = 0
        self._open: list[OpenTable] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD:
            self._unread += 1
        elif tag == "table":
            self._end_cell()
            self._flush()
            self._open.append(OpenTable())
        elif tag == "tr" and self._open:
            self._end_cell()
            self._open[-1].rows.append([])
        elif tag in ("td", "th") and self._open:
            self._end_cell()
            self._start_cell(dict(attrs))
        elif not self._in_cell and (tag in HEADINGS or tag in CODE or tag in BLOCKS):
            self._flush()
        elif self._in_cell and tag == "br":
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self._unread = max(0, self._unread - 1)
        elif tag in ("td", "th", "tr"):
            self._end_cell()
        elif tag == "table" and self._open:
            self._end_cell()
            done = self._open.pop()
            if table := make_table([row for row in done.rows if row]):
                self.tables.append(table)
                self.pieces.append(("table", len(self.tables) - 1, table.line, ""))
        elif self._in_cell:
            return
        elif tag in HEADINGS:
            self._flush("heading", HEADINGS[tag])
        elif tag in CODE:
            self._flush("code")
        elif tag in BLOCKS:
            self._flush()

    def handle_data(self, data: str) -> None:
        if self._unread:
            return
        if not self._text:
            self._line = self.getpos()[0]
        self._text.append(data)

    def close(self) -> None:
        super().close()
        self._flush()

    def _start_cell(self, attributes: dict[str, str | None]) -> None:
        table = self._open[-1]
        if not table.rows:
            table.rows.append([])
        table.spans = (_span(attributes.get("colspan")), _span(attributes.get("rowspan")))
        self._in_cell, self._text, self._line = True, [], self.getpos()[0]

    def _end_cell(self) -> None:
        if not (self._in_cell and self._open):
            return
        table = self._open[-1]
        row = table.rows[-1]
        self._fill_from_above(table, row)
        cell = TableCell(" ".join("".join(self._text).split()), self._line)
        across, down = table.spans
        for _ in range(across):
            if down > 1:
                table.below[len(row)] = (down - 1, cell)
            row.append(cell)
        self._in_cell, self._text = False, []

    @staticmethod
    def _fill_from_above(table: OpenTable, row: list[TableCell]) -> None:
        while len(row) in table.below:
            left, cell = table.below.pop(len(row))
            if left > 1:
                table.below[len(row)] = (left - 1, cell)
            row.append(cell)

    def _flush(self, kind: str = "prose", level: int = 0) -> None:
        text = "".join(self._text)
        self._text = []
        if text.strip():
            self.pieces.append((kind, level, self._line, text))


def read_page(text: str) -> PageReader:
    """Read a page, or the parts of a Markdown page that are HTML.

    The parser looks for the end of a tag or comment from each place where one begins; where none comes any
    more, that would take time with the square of the length, so what stays open is made plain text first.
    """
    body, comment_end, tail = text.rpartition("-->")
    text = body + comment_end + tail.replace("<!--", "&lt;!--")
    body, tag_end, tail = text.rpartition(">")
    reader = PageReader()
    reader.feed(body + tag_end + tail.replace("<", "&lt;"))
    reader.close()
    return reader


def _span(value: str | None) -> int:
    is_count = value is not None and value.isascii() and value.isdigit() and len(value) < 5
    return max(1, min(int(value or 1), WIDEST_SPAN)) if is_count else 1
