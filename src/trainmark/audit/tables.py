"""Tables of a report, whatever they were written in: cells with their line, under their headings."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainmark.audit.number import parse_number

RULE_CELL = re.compile(r":?-+:?")
ESCAPED_BAR = "\x00"
# A row of a table that anyone wrote is shorter.
LONGEST_LINE = 100_000


@dataclass(frozen=True)
class Cell:
    """What one cell says, and the line it stands on."""

    text: str
    line: int


@dataclass(frozen=True)
class Table:
    """A head and rows of equal width; `headings` from the outermost in, `caption` the sentence before."""

    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    headings: tuple[str, ...] = ()
    caption: str = ""

    @property
    def line(self) -> int:
        return self.head[0].line

    def under(self, headings: tuple[str, ...], caption: str) -> Table:
        return replace(self, headings=headings, caption=caption)


def make_table(lines: Sequence[Sequence[Cell]]) -> Table | None:
    """A table of the first line as head; rows are cut and filled to its width."""
    if len(lines) < 2 or len(lines[0]) < 2:
        return None
    head, *rows = lines
    return Table(tuple(head), tuple(_fitted(row, len(head)) for row in rows if row))


def pipe_tables(lines: Iterable[tuple[int, str]]) -> Iterator[Table]:
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


def csv_tables(text: str, delimiter: str) -> Iterator[Table]:
    """One table for each block of records that a blank line ends."""
    reader = csv.reader(text.split("\n"), delimiter=delimiter)
    block: list[list[Cell]] = []
    try:
        for record in reader:
            if any(field.strip() for field in record):
                block.append([Cell(field.strip(), reader.line_num) for field in record])
            else:
                yield from filter(None, [make_table(block)])
                block = []
    except csv.Error:
        pass  # a quote that never closes: what was read up to it stands
    yield from filter(None, [make_table(block)])


def bar_cells(line: str, number: int) -> list[Cell]:
    """The cells between the bars of one line."""
    inner = line.strip().replace("\\|", ESCAPED_BAR)
    inner = inner.removeprefix("|").removesuffix("|")
    return [Cell(cell.replace(ESCAPED_BAR, "|").strip(), number) for cell in inner.split("|")]


def _pipe_runs(lines: Iterable[tuple[int, str]]) -> Iterator[list[list[Cell]]]:
    """Lines of bars that nothing but one blank line parts."""
    run: list[list[Cell]] = []
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


def _loose(run: list[list[Cell]]) -> Iterator[Table]:
    """Bars without a rule are a table where the first line has no number and the others have its width."""
    width = len(run[0])
    is_even = width > 1 and len(run) > 1 and all(len(row) == width for row in run)
    if is_even and not any(parse_number(cell.text) for cell in run[0]):
        yield from filter(None, [make_table(run)])


def _is_rule(row: Sequence[Cell]) -> bool:
    return all(RULE_CELL.fullmatch(cell.text) for cell in row)


def _fitted(row: Sequence[Cell], width: int) -> tuple[Cell, ...]:
    filling = [Cell("", row[0].line)] * (width - len(row))
    return (*row[:width], *filling)
