"""Scaling that is better than linear, collapses or is not what its column says; counts that do not agree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import (
    GridColumn,
    GridRow,
    ScalingSeries,
    TableFigure,
    TableGrid,
    all_grids,
    all_series,
    counts_whole_job,
)
from trainmark.audit.ratios import PrintedRatio, claimed_ratio, exact_baseline, ratio_of
from trainmark.audit.report import Passage, Report
from trainmark.audit.terms import normalize_text, simplify_head

# Figures of one configuration, measured again, differ by about this much.
REPEAT_NOISE = 0.03
# Memory that a single device lacks, or a loader that it starves on, explain less than this.
EXPLAINED_EXCESS = 0.25
COLLAPSE = 0.5
SCALING = re.compile(r"scaling|加速比")
INFERENCE = re.compile(r"inference|infer\b|latency|推理|serving|predict", re.I)


def check_efficiency(report: Report) -> Findings:
    for grid in all_grids(report):
        if INFERENCE.search(" ".join((*grid.table.headings[-2:], grid.table.caption))):
            continue
        reported: set[tuple[int, str, bool]] = set()
        for column in grid.with_role("throughput"):
            yield from _check_rates(grid, column, reported)
        for column in grid.with_role("efficiency"):
            yield from _check_printed_efficiency(grid, column)
        if not grid.with_role("throughput"):
            yield from _check_printed_speedups(grid)


def _scaled_figures(
    grid: TableGrid, column: GridColumn
) -> Iterator[tuple[GridRow, TableFigure, GridRow, TableFigure]]:
    """Rows with a figure, and the rows of the fewest devices that they scale from with theirs."""
    for row in grid.rows:
        start, figure = exact_baseline(grid, row), row.in_column(column.index)
        base = start.in_column(column.index) if start else None
        if start and base and figure:
            yield row, figure, start, base


def _check_rates(grid: TableGrid, column: GridColumn, reported: set[tuple[int, str, bool]]) -> Findings:
    for row, figure, start, base in _scaled_figures(grid, column):
        if not counts_whole_job(figure):
            continue
        before = _row_before(grid, row, column)
        if before and figure.number.high < before[1].number.low:
            fewer = _scale_words(before[0])
            message = f"{_scale_words(row)} do less than {fewer} on line {before[0].line}."
            yield figure.finding("throughput-falls", f"{before[1].cell.text} on {fewer}", message)
            continue
        ratio = ratio_of(figure.number, base.number)
        for finding in _check_share(row, start, figure, ratio) if ratio else ():
            # Rows that scale from one wrong figure are past linear, or below half of it, together.
            kind = (start.line, finding.code, finding.is_warning)
            if kind not in reported:
                yield finding
            reported.add(kind)


def _row_before(grid: TableGrid, row: GridRow, column: GridColumn) -> tuple[GridRow, TableFigure] | None:
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


def _check_share(row: GridRow, start: GridRow, figure: TableFigure, ratio: PrintedRatio) -> Findings:
    times = (row.scale or 1) / (start.scale or 1)
    message = f"{times:g} times the devices give {ratio.value:.2f} times the throughput of line {start.line}."
    derived = f"{ratio.value / times:.1%} of linear"
    if ratio.low / times > 1 + REPEAT_NOISE:
        is_unexplained = ratio.low / times > 1 + EXPLAINED_EXCESS
        yield figure.finding("superlinear-scaling", derived, message, is_unexplained)
    elif ratio.high / times < COLLAPSE:
        yield figure.finding("collapsed-scaling", derived, message)


def _check_printed_speedups(grid: TableGrid) -> Findings:
    """A scaling without throughputs beside it is all that there is to go by."""
    for column in grid.with_role("speedup"):
        if not SCALING.search(simplify_head(column.head)):
            continue
        for row, figure, start, base in _scaled_figures(grid, column):
            times, claimed = (row.scale or 1) / (start.scale or 1), claimed_ratio(figure.number)
            if claimed_ratio(base.number).value == 1 and claimed.low > times * (1 + REPEAT_NOISE):
                derived = f"{claimed.value / times:.1%} of linear"
                message = f"{times:g} times the devices are said to be {figure.cell.text} times as fast."
                is_unexplained = claimed.low > times * (1 + EXPLAINED_EXCESS)
                yield figure.finding("superlinear-scaling", derived, message, is_unexplained)


def _check_printed_efficiency(grid: TableGrid, column: GridColumn) -> Findings:
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
            ratio = PrintedRatio(number.value, number.low, number.high)
        if ratio:
            yield from _check_row_efficiency(row, start, figure, ratio)


def _check_row_efficiency(row: GridRow, start: GridRow, figure: TableFigure, ratio: PrintedRatio) -> Findings:
    claim = figure.number
    in_percent = "%" in claim.rest or "%" in figure.head or claim.value > 2
    scale = (100 if in_percent else 1) * (start.scale or 1) / (row.scale or 1)
    if claim.value - claim.unit <= ratio.high * scale and ratio.low * scale <= claim.value + claim.unit:
        return
    unit = " %" if in_percent else ""
    places = max(claim.decimals, 1)
    derived = f"{ratio.value * scale:.{places}f}{unit}"
    message = f"{_scale_words(row)} reach {derived} by their own row."
    yield figure.finding("efficiency-mismatch", derived, message)


def _scale_words(row: GridRow) -> str:
    return f"{row.devices} devices" if row.devices else f"{row.nodes} nodes"


BATCH_IN_HEADING = re.compile(
    r"(?:batch[ _]?size(?: per (?:device|gpu))?|\bbs|bsz)\s?(?:=|:|为|是|of)?\s?(\d{1,6})(?!\d)", re.I
)
LARGEST_BATCH = re.compile(
    r"(?:max(?:imum)?|最大)(?: 的)? ?(?:可?支持的? ?)?batch[ _]?size ?(?:=|:|为|是|is)? ?(\d{1,6})(?!\d)",
    re.I,
)


def check_counts(report: Report) -> Findings:
    limits = [(p, int(match[1])) for p in report.prose if (match := LARGEST_BATCH.search(p.text[:2000]))]
    for series in all_series(report):
        for row in series.rows:
            yield from _check_devices(row)
            yield from _check_batch(series, row, limits)


def _check_devices(row: GridRow) -> Findings:
    nodes, per_node, total = row.of("nodes"), row.of("devices_per_node"), row.of("devices")
    if nodes and per_node and total:
        product = nodes[0].number.value * per_node[0].number.value
        if product != total[0].number.value:
            derived = f"{product:g} devices"
            message = f"{nodes[0].cell.text} × {per_node[0].cell.text} are {product:g} devices."
            yield AuditFinding(
                "device-count-mismatch", total[0].cell.line, f"{total[0].cell.text} devices", derived, message
            )


def _check_batch(series: ScalingSeries, row: GridRow, limits: list[tuple[Passage, int]]) -> Findings:
    if row.batch is None:
        return
    for limit in _limits_of(series, limits):
        if row.batch > limit[1]:
            message = f"line {limit[0].line} gives {limit[1]} as the largest batch that fits."
            yield AuditFinding(
                "batch-above-maximum", row.line, f"batch {row.batch}", f"at most {limit[1]}", message
            )
    match = (
        BATCH_IN_HEADING.search(normalize_text(series.table.headings[-1])) if series.table.headings else None
    )
    if match and int(match[1]) != row.batch:
        message = f"the heading above the table says {match[1]}."
        yield AuditFinding("batch-mismatch", row.line, f"batch {row.batch}", f"batch {match[1]}", message)


def _limits_of(series: ScalingSeries, limits: list[tuple[Passage, int]]) -> list[tuple[Passage, int]]:
    """The first limit after the table, if it stands under the same headings."""
    after = [limit for limit in limits if limit[0].line > series.table.line]
    return [limit for limit in after[:1] if limit[0].headings == series.table.headings]
