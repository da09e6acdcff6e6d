"""Tables of a report, whatever they were written in; pages of HTML with all else that they hold."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from trainmark.audit.terms import parse_number

RULE_CELL = re.compile(r":?-+:?")
PERCENTILE = re.compile(r"p?\d{1,2}(?:\.\d)? ?(?:%|th)?")
LINK = re.compile(r"\[([^\[\]|]{0,200})\]\([^()\s|]{0,500}\)")
TAG = re.compile(r"</?[a-zA-Z][^<>|]{0,200}>")
ESCAPED_BAR = "\x00"
# A row of a table that anyone wrote is shorter.
LONGEST_LINE = 100_000


@dataclass(frozen=True)
class TableCell:
    """What one cell says, and the line it stands on."""

    text: str
    line: int


@dataclass(frozen=True)
class ReportTable:
    """A head and rows of equal width; `headings` from the outermost in, `caption` the sentence before.

    `around` is the text between the last heading and the table.
    """

    head: tuple[TableCell, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    headings: tuple[str, ...] = ()
    caption: str = ""
    around: str = ""

    @property
    def line(self) -> int:
        return self.head[0].line

    def under(self, headings: tuple[str, ...], caption: str, around: str = "") -> ReportTable:
        return replace(self, headings=headings, caption=caption, around=around)


def make_table(lines: Sequence[Sequence[TableCell]]) -> ReportTable | None:
    """A table of the first line as head, or the first two; rows are cut and filled to its width."""
    if len(lines) < 2 or len(lines[0]) < 2:
        return None
    head, *rows = lines
    fitted = [_fitted(row, len(head)) for row in rows if row]
    if len(fitted) > 1 and _is_second_head(head, fitted):
        return ReportTable(tuple(_joined(head, fitted[0])), tuple(fitted[1:]))
    return ReportTable(tuple(head), tuple(fitted))


def _is_second_head(head: Sequence[TableCell], rows: Sequence[Sequence[TableCell]]) -> bool:
    """Whether heads that span columns are named apart in the row below, which itself has no numbers."""
    texts = [cell.text for cell in head]
    spans = sum(not text for text in texts) >= 2 or any(text and texts.count(text) > 1 for text in texts)
    labels = [cell.text for cell in rows[0]]
    named = sum(bool(label) for label in labels) * 2 > len(labels)
    return (
        spans
        and named
        and all(parse_number(label) is None or PERCENTILE.fullmatch(label) for label in labels)
        and any(parse_number(cell.text) for row in rows[1:] for cell in row)
    )


def _joined(head: Sequence[TableCell], labels: Sequence[TableCell]) -> Iterator[TableCell]:
    spanning = ""
    for cell, label in zip(head, labels, strict=True):
        spanning = cell.text or spanning
        yield TableCell(
            label.text if label.text == spanning else f"{spanning} {label.text}".strip(), cell.line
        )


def pipe_tables(lines: Iterable[tuple[int, str]]) -> Iterator[ReportTable]:
    """Tables of bars: GitHub's, also with a blank line after each row, and loose ones without a rule."""
    for run in _pipe_runs(lines):
        rules = [index for index, row in enumerate(run) if index and _is_rule(row)]
        if not rules:
            yield from _loose(run)
            continue
        ends = [*(index - 1 for index in rules[1:]), len(run)]
        for rule, end in zip(rules, ends, strict=True):
            if table := make_table([run[rule - 1], *run[rule + 1 : end]]):
                yield table


def csv_tables(text: str, delimiter: str) -> Iterator[ReportTable]:
    """One table for each block of records that a blank line ends."""
    reader = csv.reader(text.split("\n"), delimiter=delimiter)
    block: list[list[TableCell]] = []
    try:
        for record in reader:
            if any(field.strip() for field in record):
                block.append([TableCell(field.strip(), reader.line_num) for field in record])
            else:
                yield from filter(None, [make_table(block)])
                block = []
    except csv.Error:
        pass  # a quote that never closes: what was read up to it stands
    yield from filter(None, [make_table(block)])


def bar_cells(line: str, number: int) -> list[TableCell]:
    """The cells between the bars of one line."""
    inner = line.strip().replace("\\|", ESCAPED_BAR)
    inner = TAG.sub(" ", LINK.sub(r"\1", inner.removeprefix("|").removesuffix("|")))
    return [TableCell(cell.replace(ESCAPED_BAR, "|").strip(), number) for cell in inner.split("|")]


def _pipe_runs(lines: Iterable[tuple[int, str]]) -> Iterator[list[list[TableCell]]]:
    """Lines of bars that nothing but one blank line parts."""
    run: list[list[TableCell]] = []
    last = 0
    for number, line in lines:
        text = line.strip().removeprefix(">").strip()
        if "|" in text and len(text) <= LONGEST_LINE:
            if run and number - last > 2:
                yield run
                run = []
            run.append(bar_cells(text, number))
            last = number
        elif text and run:
            yield run
            run = []
    if run:
        yield run


def _loose(run: list[list[TableCell]]) -> Iterator[ReportTable]:
    """Bars without a rule are a table where the first line has no number and the others have its width."""
    width = len(run[0])
    is_even = width > 1 and len(run) > 1 and all(len(row) == width for row in run)
    if is_even and not any(parse_number(cell.text) for cell in run[0]):
        yield from filter(None, [make_table(run)])


def _is_rule(row: Sequence[TableCell]) -> bool:
    return all(RULE_CELL.fullmatch(cell.text) for cell in row)


def _fitted(row: Sequence[TableCell], width: int) -> tuple[TableCell, ...]:
    filling = [TableCell("", row[0].line)] * (width - len(row))
    return (*row[:width], *filling)


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
