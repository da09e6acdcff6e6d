"""Scaling that is better than linear, collapses, or is not what its own column says."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.audit.checks.speedup import ratio_of
from trainmark.audit.finding import Finding, Severity
from trainmark.audit.report import Report
from trainmark.audit.series import Figure, Row, Series, all_series, counts_whole_job

# Repeated runs of one configuration differ by about this much; less above linear is not worth a word.
NOISE = 0.005
COLLAPSE = 0.5


def check(report: Report) -> Iterator[Finding]:
    for series in all_series(report):
        start = series.start
        if start is None or not start.devices:
            continue
        counted = sorted((row for row in series.rows if row.devices), key=lambda row: row.devices or 0)
        for column in sorted({figure.column for row in counted for figure in row.of("throughput")}):
            yield from _rates(report, counted, start, column)
        yield from _printed_speedups(report, series, start)
        for row in counted:
            yield from _printed_efficiency(report, row, start)


def _rates(report: Report, rows: list[Row], start: Row, column: int) -> Iterator[Finding]:
    base = start.in_column(column)
    last: tuple[Row, Figure] | None = None
    for row in rows:
        figure = row.in_column(column)
        if base is None or figure is None or not counts_whole_job(figure):
            continue
        falls = (
            last is not None and row.devices != last[0].devices and figure.number.high < last[1].number.low
        )
        if falls and last:
            yield _doubt(
                report,
                figure,
                "throughput-falls",
                f"{last[1].cell.text} on {last[0].devices} devices",
                f"{row.devices} devices do less than {last[0].devices} devices on line {last[0].line}.",
            )
        elif row is not start:
            yield from _share(report, row, start, figure, ratio_of(figure.number, base.number))
        last = (row, figure)


def _share(
    report: Report, row: Row, start: Row, figure: Figure, ratio: tuple[float, float, float] | None
) -> Iterator[Finding]:
    if ratio is None or not row.devices or not start.devices:
        return
    times = row.devices / start.devices
    share = ratio[0] / times
    if ratio[1] / times > 1 + NOISE:
        yield _doubt(
            report,
            figure,
            "superlinear-scaling",
            f"{share:.1%} of linear",
            f"{times:g} times the devices give {ratio[0]:.2f} times the throughput of line {start.line}.",
        )
    elif ratio[2] / times < COLLAPSE:
        yield _doubt(
            report,
            figure,
            "collapsed-scaling",
            f"{share:.1%} of linear",
            f"{times:g} times the devices give {ratio[0]:.2f} times the throughput of line {start.line}.",
        )


def _printed_speedups(report: Report, series: Series, start: Row) -> Iterator[Finding]:
    """A speed-up without throughputs beside it is all that there is to go by."""
    for row in series.rows:
        if row.of("throughput") or not row.devices or not start.devices:
            continue
        for figure in row.of("speedup"):
            times = row.devices / start.devices
            if figure.number.low > times * (1 + NOISE):
                yield _doubt(
                    report,
                    figure,
                    "superlinear-scaling",
                    f"{figure.number.value / times:.1%} of linear",
                    f"{times:g} times the devices are said to be {figure.cell.text} times as fast.",
                )


def _printed_efficiency(report: Report, row: Row, start: Row) -> Iterator[Finding]:
    speedups, rates, base = row.of("speedup"), row.of("throughput"), start.of("throughput")
    claims = [claim for claim in row.of("efficiency") if "mfu" not in claim.head.lower()]
    if len(claims) != 1 or not row.devices or not start.devices:
        return
    if len(rates) == 1 and len(base) == 1:
        ratio = ratio_of(rates[0].number, base[0].number)
    elif len(speedups) == 1:
        number = speedups[0].number
        ratio = (number.value, number.low, number.high)
    else:
        return
    claim = claims[0].number
    in_percent = "%" in claim.rest or "%" in claims[0].head or claim.value > 2
    scale = (100 if in_percent else 1) * start.devices / row.devices
    if ratio and not (claim.low - 1e-9 <= ratio[2] * scale and ratio[1] * scale <= claim.high + 1e-9):
        unit = " %" if in_percent else ""
        places = max(claim.decimals, 1)
        yield Finding(
            "efficiency-mismatch",
            Severity.ERROR,
            report.where(claims[0].cell.line),
            claimed=claims[0].cell.text,
            derived=f"{ratio[0] * scale:.{places}f}{unit}",
            message=f"{row.devices} devices reach {ratio[0] * scale:.{places}f}{unit} by their own row.",
        )


def _doubt(report: Report, figure: Figure, code: str, derived: str, message: str) -> Finding:
    where = report.where(figure.cell.line)
    return Finding(code, Severity.WARNING, where, figure.cell.text, derived, message)
