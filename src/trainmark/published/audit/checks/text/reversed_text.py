"""A sentence that gives two figures “with or without X, respectively” against rows with and without X."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.grid import Grid, all_grids
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Passage, Report

FIGURE = r"(?<![\w.,])(\d{1,9}(?:[.,]\d{1,6})?) ?(%|x|×)?"
PAIR = re.compile(FIGURE + r" ?(?:to|and|or|vs\.?|versus) ?" + FIGURE, re.I)
ORDER = re.compile(
    r"\b(with|without)(?: \w+){0,2}? (?:and|or) (with|without) ([\w.+-]{2,40}?)[.,]? respectively", re.I
)
REACH = 120
LESS_IS_BETTER = re.compile(r"time|latency|memory|loss|\bGB\b|\bGiB\b|seconds|minutes|hours", re.I)


def check(report: Report) -> Iterator[Finding]:
    for passage in report.prose:
        text = passage.text[:4000]
        for order in ORDER.finditer(text):
            before = text[max(0, order.start() - REACH) : order.start()]
            # Of several pairs the last is meant.
            pairs = list(PAIR.finditer(before))
            if pairs and not LESS_IS_BETTER.search(before[pairs[-1].start() :]):
                yield from _sentence(report, passage, order, pairs[-1])


def _sentence(
    report: Report, passage: Passage, order: re.Match[str], pair: re.Match[str]
) -> Iterator[Finding]:
    first, second = (float(pair[index].replace(",", "")) for index in (1, 3))
    if order[1].lower() == order[2].lower() or first == second:
        return
    with_it, without_it = (first, second) if order[1].lower() == "with" else (second, first)
    name = order[3].strip(".,")
    gains = [gain for grid in all_grids(report) for gain in _gains(grid, name)]
    if not gains:
        return
    rises = sum(after > before for before, after, _ in gains)
    if rises in (0, len(gains)) and (with_it > without_it) != (rises == len(gains)):
        unit = pair[2] or pair[4] or ""
        speed = "faster" if rises else "slower"
        yield Finding(
            "text-against-table",
            Severity.ERROR,
            report.where(passage.line),
            claimed=f"{with_it:g}{unit} with {name}, {without_it:g}{unit} without",
            derived=f"{without_it:g}{unit} with {name}, {with_it:g}{unit} without",
            message=f"the row with {name} on line {gains[0][2]} is the {speed} one.",
        )


def _gains(grid: Grid, name: str) -> Iterator[tuple[float, float, int]]:
    """Throughput without and with the thing named, from rows whose labels differ in it alone."""
    labels = {_label(row.cells[0].text): row for row in grid.rows}
    for label, row in labels.items():
        if name.lower() not in label:
            continue
        rest = _label(label.replace(name.lower(), " "))
        before = labels.get(rest)
        for figure in row.of("throughput") if before else ():
            other = before.in_column(figure.column) if before else None
            if other:
                yield other.number.value, figure.number.value, row.line


def _label(text: str) -> str:
    return " ".join(re.sub(r"[^\w.]+", " ", text.lower()).split())
