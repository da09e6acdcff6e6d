"""One number in two places: tables against printed results, and tables against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.claims.grid import Grid, all_grids, counts_whole_job
from trainmark.published.audit.claims.named_devices import devices_in_words
from trainmark.published.audit.claims.printed import PrintedResult, printed_results
from trainmark.published.audit.claims.series import all_series, precision_of
from trainmark.published.audit.claims.topology import devices_in
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

# Two series are one result shown twice where this many values agree to the digit, and more than differ.
LEAST_SHARED = 2
# A value that stands in more places than this ties nothing together.
MOST_PLACES = 8
# Two versions of a figure lie close together; further apart, they are of two configurations.
LARGEST_DIFFERENCE = 0.1

Point = tuple[Number, int]


@dataclass(frozen=True)
class Curve:
    """Throughput by number of devices, as one place gives it; a printed result gives several estimates."""

    place: str
    points: dict[int, tuple[Point, ...]]
    families: frozenset[str] = frozenset()
    precision: str | None = None


def check(report: Report) -> Iterator[Finding]:
    tables = list(_table_curves(report))
    for result in printed_results(report):
        if printed := _printed_curve(result):
            for table in tables:
                yield from _compare(report, table, printed)
    for table, other in _pairs(tables):
        if _may_be_one(table, other):
            yield from _compare(report, table, other)


def _compare(report: Report, curve: Curve, other: Curve) -> Iterator[Finding]:
    shared = sorted(curve.points.keys() & other.points.keys())
    wrong = [n for n in shared if not _agree(curve.points[n][0], other.points[n])]
    agreeing = len(shared) - len(wrong)
    if not wrong or agreeing < LEAST_SHARED or agreeing <= len(wrong):
        return
    for devices in wrong:
        (number, line), (reference, place) = curve.points[devices][0], other.points[devices][0]
        if abs(number.value - reference.value) > LARGEST_DIFFERENCE * reference.value:
            continue
        yield Finding(
            "two-values",
            Severity.ERROR,
            report.where(line),
            claimed=f"{number.value:.{number.decimals}f}",
            derived=f"{reference.value:.{reference.decimals}f}",
            message=f"{other.place} gives another figure for {devices} devices on line {place}.",
        )


def _agree(point: Point, estimates: tuple[Point, ...]) -> bool:
    number = point[0]
    return any(abs(number.value - other.value) <= number.unit + other.unit for other, _ in estimates)


def _table_curves(report: Report) -> Iterator[Curve]:
    families = {id(grid.table): _families(grid) for grid in all_grids(report)}
    for series in all_series(report):
        columns = sorted({figure.column for row in series.rows for figure in row.of("throughput")})
        for column in columns:
            points: dict[int, tuple[Point, ...]] = {}
            for row in series.rows:
                figure = row.in_column(column)
                if row.devices and figure and counts_whole_job(figure):
                    points[row.devices] = ((figure.number, figure.cell.line),)
            if len(points) >= LEAST_SHARED:
                place = f"the table on line {series.table.line}"
                precision = precision_of(series.table, series.rows[0], series.table.head[column].text)
                yield Curve(place, points, families[id(series.table)], precision)


def _families(grid: Grid) -> frozenset[str]:
    """The devices that the words nearest to a table name."""
    for text in (grid.table.caption, *reversed(grid.table.headings)):
        if devices := devices_in_words((text,)):
            return frozenset(device.name for device in devices)
    return frozenset()


def _may_be_one(one: Curve, other: Curve) -> bool:
    """Whether nothing that the tables say of themselves sets them apart."""
    devices_differ = one.families and other.families and not one.families & other.families
    precisions_differ = one.precision and other.precision and one.precision != other.precision
    return not devices_differ and not precisions_differ


def _printed_curve(result: PrintedResult) -> Curve | None:
    """Average and median of a printed result: a table may have taken either."""
    points: dict[int, tuple[Point, ...]] = {}
    for case in result.cases:
        devices = devices_in(case.topology)
        estimates = [case.figures[name] for name in ("median_speed", "average_speed") if name in case.figures]
        if devices and estimates:
            points[devices] = tuple(estimates)
    return Curve("the printed result", points) if len(points) > LEAST_SHARED else None


def _pairs(curves: list[Curve]) -> Iterator[tuple[Curve, Curve]]:
    """Later curves with the earlier ones that they share values with."""
    holders: dict[tuple[int, float], list[int]] = {}
    shared: Counter[tuple[int, int]] = Counter()
    for index, curve in enumerate(curves):
        for devices, ((number, _), *_) in curve.points.items():
            places = holders.setdefault((devices, number.value), [])
            if len(places) < MOST_PLACES:
                shared.update((index, earlier) for earlier in places)
                places.append(index)
    for (later, earlier), count in sorted(shared.items()):
        if count >= LEAST_SHARED:
            yield curves[later], curves[earlier]
