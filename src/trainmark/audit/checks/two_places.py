"""One number in two places: tables against printed results, and tables against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.audit.finding import Finding, Severity
from trainmark.audit.number import Number
from trainmark.audit.printed import PrintedResult, printed_results
from trainmark.audit.report import Report
from trainmark.audit.series import all_series, counts_whole_job
from trainmark.audit.topology import devices_in

# Two series are one result shown twice where this many values agree to the digit, and at least half of all.
LEAST_SHARED = 2
# A value that stands in more places than this ties nothing together.
MOST_PLACES = 8


@dataclass(frozen=True)
class Curve:
    """Throughput by number of devices, as one place gives it."""

    place: str
    points: dict[int, tuple[Number, int]]


def check(report: Report) -> Iterator[Finding]:
    tables = list(_table_curves(report))
    for result in printed_results(report):
        for name in ("median_speed", "average_speed"):
            printed = _printed_curve(result, name)
            if printed:
                for table in tables:
                    yield from _compare(report, table, printed)
    for table, other in _pairs(tables):
        yield from _compare(report, table, other)


def _compare(report: Report, curve: Curve, other: Curve) -> Iterator[Finding]:
    shared = sorted(curve.points.keys() & other.points.keys())
    wrong = [n for n in shared if not _agree(curve.points[n][0], other.points[n][0])]
    agreeing = len(shared) - len(wrong)
    if not wrong or agreeing < LEAST_SHARED or agreeing < len(wrong):
        return
    for devices in wrong:
        (number, line), (reference, place) = curve.points[devices], other.points[devices]
        yield Finding(
            "two-values",
            Severity.ERROR,
            report.where(line),
            claimed=f"{number.value:.{number.decimals}f}",
            derived=f"{reference.value:.{reference.decimals}f}",
            message=f"{other.place} gives another figure for {devices} devices on line {place}.",
        )


def _agree(one: Number, other: Number) -> bool:
    return abs(one.value - other.value) <= one.half_unit + other.half_unit + 1e-9


def _table_curves(report: Report) -> Iterator[Curve]:
    for series in all_series(report):
        columns = sorted({figure.column for row in series.rows for figure in row.of("throughput")})
        for column in columns:
            points = {
                row.devices: (figure.number, figure.cell.line)
                for row in series.rows
                if row.devices and (figure := row.in_column(column)) and counts_whole_job(figure)
            }
            if len(points) >= LEAST_SHARED:
                yield Curve(f"the table on line {series.table.line}", points)


def _printed_curve(result: PrintedResult, name: str) -> Curve | None:
    points = {
        devices: case.figures[name]
        for case in result.cases
        if name in case.figures and (devices := devices_in(case.topology))
    }
    return Curve("the printed result", points) if len(points) > LEAST_SHARED else None


def _pairs(curves: list[Curve]) -> Iterator[tuple[Curve, Curve]]:
    """Later curves with the earlier ones that they share values with."""
    holders: dict[tuple[int, float], list[int]] = {}
    shared: Counter[tuple[int, int]] = Counter()
    for index, curve in enumerate(curves):
        for devices, (number, _) in curve.points.items():
            places = holders.setdefault((devices, number.value), [])
            if len(places) < MOST_PLACES:
                shared.update((index, earlier) for earlier in places)
                places.append(index)
    for (later, earlier), count in sorted(shared.items()):
        if count >= LEAST_SHARED:
            yield curves[later], curves[earlier]
