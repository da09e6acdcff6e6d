"""Averages, medians and speed-ups that a script printed, against the runs it listed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean, median

from trainmark.published.audit.claims.columns import simplified
from trainmark.published.audit.claims.printed import PrintedCase, PrintedResult, printed_results
from trainmark.published.audit.claims.ratio import agrees, ratio_of
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number, parse_number, uses_decimal_comma
from trainmark.published.audit.report.report import Report
from trainmark.published.audit.report.tables import Table

RUN_HEAD = re.compile(r"(?:(?:run|test|trial|repeat|第|round) ?#? ?)?\d{1,3} ?次?")
MEAN_HEAD = re.compile(r"average|\bmean\b|\bavg\b|平均|均值")
MEDIAN_HEAD = re.compile(r"median|中位|中值")


def check(report: Report) -> Iterator[Finding]:
    for result in printed_results(report):
        yield from _changed_runs(report, result)
        for case in result.cases:
            yield from _case(report, case)
            yield from _speedup(report, case, result)
    for table in report.tables:
        yield from _table(report, table)


def _case(report: Report, case: PrintedCase) -> Iterator[Finding]:
    values = [run.value for run in case.runs.values()]
    if not values:
        return
    for name, word, estimate in (
        ("average_speed", "average", fmean(values)),
        ("median_speed", "median", median(values)),
    ):
        if name in case.figures:
            claimed, line = case.figures[name]
            spread = max(run.unit for run in case.runs.values())
            if abs(claimed.value - estimate) > claimed.unit + spread:
                yield differs(
                    report, line, word, claimed, estimate, f"the {len(values)} runs of {case.topology}"
                )


def _speedup(report: Report, case: PrintedCase, result: PrintedResult) -> Iterator[Finding]:
    start = next((c for c in result.cases if c.topology == "1n1g" and c.model == case.model), None)
    if start is None or "speedup" not in case.figures or start is case:
        return
    claimed, line = case.figures["speedup"]
    ratios = [
        ratio
        for name in ("median_speed", "average_speed")
        if (above := case.figure(name))
        and (below := start.figure(name))
        and (ratio := ratio_of(above, below))
    ]
    if ratios and not any(agrees(claimed, ratio) for ratio in ratios):
        yield Finding(
            "speedup-mismatch",
            Severity.ERROR,
            report.where(line),
            claimed=f"{claimed.value:g}",
            derived=f"{ratios[0].value:.2f}",
            message=f"the speed-up of {case.topology} is {ratios[0].value:.2f} by the printed speeds.",
        )


def _changed_runs(report: Report, result: PrintedResult) -> Iterator[Finding]:
    """A run is printed again with each later file of its topology; it has to stay the same."""
    first: dict[tuple[str, str, int], tuple[Number, int]] = {}
    for line in result.lines:
        for run, number in line.runs.items():
            earlier, where = first.setdefault((line.folder, line.topology, run), (number, line.line))
            if earlier.value != number.value:
                yield Finding(
                    "two-values",
                    Severity.ERROR,
                    report.where(line.line),
                    claimed=f"{number.value:g}",
                    derived=f"{earlier.value:g}",
                    message=f"run {run} of {line.topology} is {earlier.value:g} on line {where}.",
                )


def _table(report: Report, table: Table) -> Iterator[Finding]:
    """Tables with a column for each run and one for their mean or median."""
    heads = [simplified(cell.text) for cell in table.head]
    runs = [index for index, head in enumerate(heads) if len(head) < 20 and RUN_HEAD.fullmatch(head)]
    if len(runs) < 2:
        return
    comma = uses_decimal_comma([cell.text for row in table.rows for cell in row])
    for index, head in enumerate(heads):
        is_mean, is_median = MEAN_HEAD.search(head), MEDIAN_HEAD.search(head)
        if bool(is_mean) == bool(is_median):
            continue
        for row in table.rows:
            numbers = [parse_number(row[run].text, comma) for run in runs]
            listed = [number for number in numbers if number]
            claimed = parse_number(row[index].text, comma)
            if not claimed or len(listed) < 2:
                continue
            estimate = (fmean if is_mean else median)([number.value for number in listed])
            spread = max(number.unit for number in listed)
            if abs(claimed.value - estimate) > claimed.unit + spread:
                word = "average" if is_mean else "median"
                yield differs(
                    report, row[index].line, word, claimed, estimate, f"the {len(listed)} runs listed"
                )


def differs(report: Report, line: int, word: str, claimed: Number, estimate: float, what: str) -> Finding:
    places = claimed.decimals
    return Finding(
        f"{word}-mismatch",
        Severity.ERROR,
        report.where(line),
        claimed=f"{claimed.value:.{places}f}",
        derived=f"{estimate:.{places}f}",
        message=f"the {word} of {what} is {estimate:.{places}f}.",
    )
