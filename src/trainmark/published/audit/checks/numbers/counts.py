"""Counts that have to agree within a row: nodes, devices, batch sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.grid import Row
from trainmark.published.audit.claims.series import Series, all_series
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import normal
from trainmark.published.audit.report.report import Passage, Report

BATCH = re.compile(
    r"(?:batch[ _]?size(?: per (?:device|gpu))?|\bbs|bsz)\s?(?:=|:|为|是|of)?\s?(\d{1,6})(?!\d)", re.I
)
LARGEST_BATCH = re.compile(
    r"(?:max(?:imum)?|最大)(?: 的)? ?(?:可?支持的? ?)?batch[ _]?size ?(?:=|:|为|是|is)? ?(\d{1,6})(?!\d)",
    re.I,
)


def check(report: Report) -> Iterator[Finding]:
    limits = [(p, int(match[1])) for p in report.prose if (match := LARGEST_BATCH.search(p.text[:2000]))]
    for series in all_series(report):
        for row in series.rows:
            yield from _devices(report, row)
            yield from _batch(report, series, row, limits)


def _devices(report: Report, row: Row) -> Iterator[Finding]:
    nodes, per_node, total = row.of("nodes"), row.of("devices_per_node"), row.of("devices")
    if nodes and per_node and total:
        product = nodes[0].number.value * per_node[0].number.value
        if product != total[0].number.value:
            yield Finding(
                "device-count-mismatch",
                Severity.ERROR,
                report.where(total[0].cell.line),
                claimed=f"{total[0].cell.text} devices",
                derived=f"{product:g} devices",
                message=f"{nodes[0].cell.text} × {per_node[0].cell.text} are {product:g} devices.",
            )


def _batch(report: Report, series: Series, row: Row, limits: list[tuple[Passage, int]]) -> Iterator[Finding]:
    if row.batch is None:
        return
    for limit in _limits_of(series, limits):
        if row.batch > limit[1]:
            yield Finding(
                "batch-above-maximum",
                Severity.ERROR,
                report.where(row.line),
                claimed=f"batch {row.batch}",
                derived=f"at most {limit[1]}",
                message=f"line {limit[0].line} gives {limit[1]} as the largest batch that fits.",
            )
    match = BATCH.search(normal(series.table.headings[-1])) if series.table.headings else None
    if match and int(match[1]) != row.batch:
        yield Finding(
            "batch-mismatch",
            Severity.ERROR,
            report.where(row.line),
            claimed=f"batch {row.batch}",
            derived=f"batch {match[1]}",
            message=f"the heading above the table says {match[1]}.",
        )


def _limits_of(series: Series, limits: list[tuple[Passage, int]]) -> list[tuple[Passage, int]]:
    """The first limit after the table, if it stands under the same headings."""
    after = [limit for limit in limits if limit[0].line > series.table.line]
    return [limit for limit in after[:1] if limit[0].headings == series.table.headings]
