"""Scaling that is better than linear, collapses, or is not what its own column says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.baseline import exact_baseline
from trainmark.published.audit.claims.columns import simplified
from trainmark.published.audit.claims.grid import Column, Figure, Grid, Row, all_grids, counts_whole_job
from trainmark.published.audit.claims.ratio import Ratio, claimed_ratio, ratio_of
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

# Figures of one configuration, measured again, differ by about this much.
NOISE = 0.03
# Memory that a single device lacks, or a loader that it starves on, explain less than this.
EXPLAINED = 0.25
COLLAPSE = 0.5
SCALING = re.compile(r"scaling|加速比")
INFERENCE = re.compile(r"inference|infer\b|latency|推理|serving|predict", re.I)


def check(report: Report) -> Iterator[Finding]:
    for grid in all_grids(report):
        if INFERENCE.search(" ".join((*grid.table.headings[-2:], grid.table.caption))):
            continue
        reported: set[tuple[int, str, Severity]] = set()
        for column in grid.with_role("throughput"):
            yield from _rates(report, grid, column, reported)
        for column in grid.with_role("efficiency"):
            yield from _printed_efficiency(report, grid, column)
        if not grid.with_role("throughput"):
            yield from _printed_speedups(report, grid)


def _rates(
    report: Report, grid: Grid, column: Column, reported: set[tuple[int, str, Severity]]
) -> Iterator[Finding]:
    for row in grid.rows:
        start, figure = exact_baseline(grid, row), row.in_column(column.index)
        base = start.in_column(column.index) if start else None
        if not (start and base and figure and counts_whole_job(figure)):
            continue
        before = _row_before(grid, row, column)
        if before and figure.number.high < before[1].number.low:
            yield _finding(
                report,
                figure,
                Severity.NOTE,
                "throughput-falls",
                f"{before[1].cell.text} on {_counted(before[0])}",
                f"{_counted(row)} do less than {_counted(before[0])} on line {before[0].line}.",
            )
            continue
        ratio = ratio_of(figure.number, base.number)
        for finding in _share(report, row, start, figure, ratio) if ratio else ():
            # Rows that scale from one wrong figure are past linear, or below half of it, together.
            if (start.line, finding.code, finding.severity) not in reported:
                yield finding
            reported.add((start.line, finding.code, finding.severity))


def _row_before(grid: Grid, row: Row, column: Column) -> tuple[Row, Figure] | None:
    """The row of the next fewer devices in the same configuration."""
    fewer = [
        (other, figure)
        for other in grid.rows
        if other.key == row.key
        and other.scale
        and row.scale
        and other.scale < row.scale
        and other.line < row.line
        and (figure := other.in_column(column.index))
    ]
    return max(fewer, key=lambda pair: pair[0].scale or 0, default=None)


def _share(report: Report, row: Row, start: Row, figure: Figure, ratio: Ratio) -> Iterator[Finding]:
    times = (row.scale or 1) / (start.scale or 1)
    message = f"{times:g} times the devices give {ratio.value:.2f} times the throughput of line {start.line}."
    derived = f"{ratio.value / times:.1%} of linear"
    if ratio.low / times > 1 + NOISE:
        severity = Severity.WARNING if ratio.low / times > 1 + EXPLAINED else Severity.NOTE
        yield _finding(report, figure, severity, "superlinear-scaling", derived, message)
    elif ratio.high / times < COLLAPSE:
        yield _finding(report, figure, Severity.NOTE, "collapsed-scaling", derived, message)


def _printed_speedups(report: Report, grid: Grid) -> Iterator[Finding]:
    """A scaling without throughputs beside it is all that there is to go by."""
    for column in grid.with_role("speedup"):
        if not SCALING.search(simplified(column.head)):
            continue
        for row in grid.rows:
            start, figure = exact_baseline(grid, row), row.in_column(column.index)
            own = start.in_column(column.index) if start else None
            if not (start and figure and own) or claimed_ratio(own.number).value != 1:
                continue
            times, claimed = (row.scale or 1) / (start.scale or 1), claimed_ratio(figure.number)
            if claimed.low > times * (1 + NOISE):
                yield _finding(
                    report,
                    figure,
                    Severity.WARNING if claimed.low > times * (1 + EXPLAINED) else Severity.NOTE,
                    "superlinear-scaling",
                    f"{claimed.value / times:.1%} of linear",
                    f"{times:g} times the devices are said to be {figure.cell.text} times as fast.",
                )


def _printed_efficiency(report: Report, grid: Grid, column: Column) -> Iterator[Finding]:
    """Efficiencies of linear scaling against the throughput or the speed-up of their rows."""
    rates = [c for c in grid.with_role("throughput") if not c.precision or c.precision == column.precision]
    speedups = [c for c in grid.with_role("speedup") if not c.precision or c.precision == column.precision]
    if len(grid.with_role("efficiency")) != 1 and column.precision is None:
        return
    for row in grid.rows:
        start, figure = exact_baseline(grid, row), row.in_column(column.index)
        if start is None or figure is None:
            continue
        ratio = None
        if len(rates) == 1:
            above, below = row.in_column(rates[0].index), start.in_column(rates[0].index)
            ratio = (
                ratio_of(above.number, below.number) if above and below and counts_whole_job(above) else None
            )
        elif len(speedups) == 1 and (speedup := row.in_column(speedups[0].index)):
            number = claimed_ratio(speedup.number)
            ratio = Ratio(number.value, number.low, number.high)
        if ratio:
            yield from _against(report, row, start, figure, ratio)


def _against(report: Report, row: Row, start: Row, figure: Figure, ratio: Ratio) -> Iterator[Finding]:
    claim = figure.number
    in_percent = "%" in claim.rest or "%" in figure.head or claim.value > 2
    scale = (100 if in_percent else 1) * (start.scale or 1) / (row.scale or 1)
    if claim.value - claim.unit <= ratio.high * scale and ratio.low * scale <= claim.value + claim.unit:
        return
    unit = " %" if in_percent else ""
    places = max(claim.decimals, 1)
    derived = f"{ratio.value * scale:.{places}f}{unit}"
    yield Finding(
        "efficiency-mismatch",
        Severity.ERROR,
        report.where(figure.cell.line),
        claimed=figure.cell.text,
        derived=derived,
        message=f"{_counted(row)} reach {derived} by their own row.",
    )


def _counted(row: Row) -> str:
    return f"{row.devices} devices" if row.devices else f"{row.nodes} nodes"


def _finding(
    report: Report, figure: Figure, severity: Severity, code: str, derived: str, message: str
) -> Finding:
    return Finding(code, severity, report.where(figure.cell.line), figure.cell.text, derived, message)
