"""One figure in two units."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.published.audit.claims.columns import seconds_per_unit
from trainmark.published.audit.claims.grid import Figure, Row
from trainmark.published.audit.claims.series import all_series
from trainmark.published.audit.claims.statements import statements
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

# Throughput and time a step come from one clock; means of rates differ from it by less than this.
TOLERANCE = 0.1


def check(report: Report) -> Iterator[Finding]:
    by_rate = {
        statement.rate.value: statement
        for statement in statements(report)
        if statement.rate and statement.rate_unit
    }
    for series in all_series(report):
        unit_told = seconds_per_unit(series.table.caption)
        heads = {f.column: f for row in series.rows for f in row.of("throughput")}
        for figure in heads.values():
            unit = seconds_per_unit(figure.head)
            if unit and unit_told and unit != unit_told:
                yield _finding(report, series.table.line, figure.head, series.table.caption, "the caption")
        for row in series.rows:
            for figure in row.of("throughput"):
                statement = by_rate.get(figure.number.value)
                unit = seconds_per_unit(figure.head)
                if statement and unit and unit != seconds_per_unit(f"samples/{statement.rate_unit}"):
                    where = f"the text on line {statement.line}"
                    yield _finding(report, figure.cell.line, figure.head, f"per {statement.rate_unit}", where)
            yield from _step_time(report, row)


def _finding(report: Report, line: int, claimed: str, derived: str, source: str) -> Finding:
    message = f"{source} gives the same figure in another unit."
    return Finding("unit-mismatch", Severity.ERROR, report.where(line), claimed, derived[:80], message)


def _step_time(report: Report, row: Row) -> Iterator[Finding]:
    rates, times = row.of("throughput"), row.of("step_time")
    if len(rates) != 1 or len(times) != 1 or not row.batch or not row.devices:
        return
    seconds = _seconds(times[0])
    if seconds is None or seconds <= 0:
        return
    derived = row.batch * row.devices / seconds
    claimed = rates[0].number.value / (seconds_per_unit(rates[0].head) or 1.0)
    if claimed > 0 and not 1 - TOLERANCE < claimed / derived < 1 + TOLERANCE:
        yield Finding(
            "step-time-mismatch",
            Severity.ERROR,
            report.where(rates[0].cell.line),
            claimed=f"{rates[0].cell.text} ({rates[0].head})",
            derived=f"{derived:.1f} samples/s",
            message=f"{row.devices} × {row.batch} samples in {times[0].cell.text} ({times[0].head}).",
        )


def _seconds(figure: Figure) -> float | None:
    """The seconds of a time whose cell or head names its unit."""
    return figure.number.value if figure.number.rest == "s" else None
