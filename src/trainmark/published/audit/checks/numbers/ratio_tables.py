"""Speed-ups over figures of another table: of an option, of one machine over another, of one precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from trainmark.published.audit.claims.columns import simplified
from trainmark.published.audit.claims.grid import COUNTS, MEASURED, Column, Grid, Row, all_grids
from trainmark.published.audit.claims.precision import CLASSES, precisions_in
from trainmark.published.audit.claims.ratio import Ratio, agrees, claimed_ratio, ratio_of
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number, normal
from trainmark.published.audit.report.report import Report

# So many tables before are looked at.
REACH = 4
# An option is on or off; a column of more values is none.
MOST_VALUES = 3
LEAST_AGREEING = 2
AGREEING_FOR_EACH_WRONG = 2

Attributes = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Measured:
    """A throughput with all that its row says of its configuration."""

    attributes: Attributes
    number: Number
    line: int


def check(report: Report) -> Iterator[Finding]:
    grids = all_grids(report)
    for index, grid in enumerate(grids):
        speedups = grid.with_role("speedup")
        if len(speedups) != 1:
            continue
        if not grid.with_role("throughput", "time_to_train", "step_time"):
            before = [
                other for other in grids[max(0, index - REACH) : index] if other.with_role("throughput")
            ]
            ways = _ways([_measured(source) for source in before[::-1]])
            yield from _compare(report, grid, speedups[0].index, ways)
        elif _compares_precisions(grid, speedups[0]):
            # The other precision has a table of its own, beside this one.
            beside = [*grids[index + 1 : index + 2], *grids[max(0, index - 1) : index]]
            own = _by_attributes(_measured(grid))
            yield from _compare(
                report,
                grid,
                speedups[0].index,
                (_ratios(own, _by_attributes(_measured(other))) for other in beside),
            )


def _compares_precisions(grid: Grid, column: Column) -> bool:
    """Whether the one throughput of a table is of one of the precisions that its speed-up is between."""
    rates = grid.with_role("throughput")
    return bool(precisions_in(column.head)) and len(rates) == 1 and rates[0].precision is None


def _compare(
    report: Report, grid: Grid, column: int, ways: Iterable[dict[Attributes, tuple[Ratio, int]]]
) -> Iterator[Finding]:
    claims = [(_attributes(grid, row), row) for row in grid.rows if row.in_column(column)]
    best: list[tuple[Row, Ratio, int]] = []
    wrong: list[tuple[Row, Ratio, int]] = []
    for ratios in ways:
        tried = [(row, *ratios[key]) for key, row in claims if key in ratios]
        failing = [one for one in tried if not _agrees(one[0], column, one[1])]
        if len(tried) - len(failing) > len(best) - len(wrong):
            best, wrong = tried, failing
    agreeing = len(best) - len(wrong)
    if agreeing < LEAST_AGREEING or len(wrong) * AGREEING_FOR_EACH_WRONG > agreeing:
        return
    for row, ratio, line in wrong:
        figure = row.in_column(column)
        if figure:
            yield Finding(
                "speedup-mismatch",
                Severity.ERROR,
                report.where(figure.cell.line),
                claimed=figure.cell.text,
                derived=f"{ratio.value:.{max(2, figure.number.decimals)}f}",
                message=f"the figures on line {line} and its counterpart give {ratio.value:.3f}.",
            )


def _agrees(row: Row, column: int, ratio: Ratio) -> bool:
    figure = row.in_column(column)
    return figure is not None and agrees(claimed_ratio(figure.number), ratio)


def _ways(tables: list[list[Measured]]) -> Iterator[dict[Attributes, tuple[Ratio, int]]]:
    """Ratios by configuration: of two values of one attribute in a table, or of two tables."""
    for table in tables:
        for name in sorted({name for one in table for name, _ in one.attributes}):
            values = sorted({value for one in table for key, value in one.attributes if key == name})
            if 2 <= len(values) <= MOST_VALUES:
                for one, other in combinations(values, 2):
                    first, second = _of_value(table, name, one), _of_value(table, name, other)
                    yield from (_ratios(first, second), _ratios(second, first))
    for table, another in combinations(tables, 2):
        first, second = _by_attributes(table), _by_attributes(another)
        yield from (_ratios(first, second), _ratios(second, first))


def _ratios(
    above: dict[Attributes, Measured], below: dict[Attributes, Measured]
) -> dict[Attributes, tuple[Ratio, int]]:
    ratios = {}
    for key, one in above.items():
        ratio = ratio_of(one.number, below[key].number) if key in below else None
        if ratio:
            ratios[key] = (ratio, one.line)
    return ratios


def _of_value(table: list[Measured], name: str, value: str) -> dict[Attributes, Measured]:
    """The figures that have a value of an attribute, by all the others."""
    return {one.attributes - {(name, value)}: one for one in table if (name, value) in one.attributes}


def _by_attributes(table: list[Measured]) -> dict[Attributes, Measured]:
    return {one.attributes: one for one in table}


def _measured(grid: Grid) -> list[Measured]:
    measurements = []
    for row in grid.rows:
        for figure in row.of("throughput"):
            attributes = _attributes(grid, row, grid.columns[figure.column].precision)
            measurements.append(Measured(attributes, figure.number, figure.cell.line))
    return measurements


def _attributes(grid: Grid, row: Row, precision: str | None = None) -> Attributes:
    """Devices, class of precision, and every other cell that tells the configuration."""
    named = {("precision", CLASSES[precision])} if precision else set()
    for column in grid.columns:
        text = normal(row.cells[column.index].text)
        classes = {CLASSES[name] for name in precisions_in(text)}
        if column.role == "precision" and len(classes) == 1:
            named.add(("precision", classes.pop()))
        elif column.role not in MEASURED and column.role not in COUNTS:
            named.add((simplified(column.head), text.lower()))
    return frozenset(named | {("devices", str(row.devices))})
