"""Tables with a row for each run and one for their mean or median, and how many runs the text speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean, geometric_mean, harmonic_mean, median

from trainmark.published.audit.checks.numbers.averages import MEAN_HEAD, MEDIAN_HEAD, RUN_HEAD, differs
from trainmark.published.audit.claims.columns import simplified
from trainmark.published.audit.claims.rules import stated_repeats
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import parse_number, uses_decimal_comma
from trainmark.published.audit.report.report import Report
from trainmark.published.audit.report.tables import Cell, Table

# What the head of the first column calls its rows; `| 1 |` alone may be a count of devices.
RUNS = re.compile(r"(?:run|trial|repeat|repetition|round|seed)s?(?: ?(?:#|no\.?|number|id))?|实验|次数|轮次")
NAMED_RUN = re.compile(r"(?:run|trial|repeat|round) ?#? ?\d{1,3}|第 ?\d{1,3} ?次")
LONGEST_NAME = 20
Row = tuple[Cell, ...]


def check(report: Report) -> Iterator[Finding]:
    lists = [(table, runs) for table in report.tables if len(runs := _runs(table)) > 1]
    for table, runs in lists:
        for row in table.rows:
            yield from _estimates(report, table, runs, row)
    repeats = {count: line for line, count in stated_repeats(report)}
    if len(lists) != 1 or len(repeats) != 1:
        return
    ((table, runs),), ((count, line),) = lists, repeats.items()
    if len(runs) < count:
        yield Finding(
            "repeats-mismatch",
            Severity.ERROR,
            report.where(runs[0][0].line),
            claimed=f"{count} runs (line {line})",
            derived=f"{len(runs)} runs",
            message=f"{len(runs)} runs are listed.",
        )


def _runs(table: Table) -> list[Row]:
    """The rows of runs; none where a label stands twice, as under two configurations."""
    by_number = RUNS.fullmatch(simplified(table.head[0].text)) is not None
    pattern = RUN_HEAD if by_number else NAMED_RUN
    rows = [row for row in table.rows if pattern.fullmatch(simplified(row[0].text))]
    return rows if len({simplified(row[0].text) for row in rows}) == len(rows) else []


def _estimates(report: Report, table: Table, runs: list[Row], row: Row) -> Iterator[Finding]:
    name = simplified(row[0].text)
    is_mean, is_median = MEAN_HEAD.search(name), MEDIAN_HEAD.search(name)
    if bool(is_mean) == bool(is_median) or len(name) > LONGEST_NAME:
        return
    comma = uses_decimal_comma([cell.text for cells in table.rows for cell in cells])
    for column in range(1, len(table.head)):
        listed = [number for run in runs if (number := parse_number(run[column].text, comma))]
        claimed = parse_number(row[column].text, comma)
        if not claimed or len(listed) != len(runs) or min(number.value for number in listed) <= 0:
            continue
        values, slack = [number.value for number in listed], claimed.unit + max(n.unit for n in listed)
        # Of rates a mean may be any of the three.
        means = (
            (fmean(values), harmonic_mean(values), geometric_mean(values)) if is_mean else (median(values),)
        )
        if all(abs(claimed.value - estimate) > slack for estimate in means):
            word = "average" if is_mean else "median"
            yield differs(report, row[column].line, word, claimed, means[0], f"the {len(runs)} runs listed")
