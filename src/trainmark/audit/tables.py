"""Tables of a report, whatever they were written in: cells with their line, under their headings."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainmark.audit.number import parse_number

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
