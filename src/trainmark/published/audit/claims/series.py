"""Scaling series out of tables: rows of one configuration that differ in their number of devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.claims.grid import Grid, Row, all_grids, read_grid
from trainmark.published.audit.claims.precision import only_precision, precisions_in
from trainmark.published.audit.report.report import Report
from trainmark.published.audit.report.tables import Table


@dataclass(frozen=True)
class Series:
    """Rows of one configuration, as they stand."""

    table: Table
    rows: tuple[Row, ...]


def all_series(report: Report) -> list[Series]:
    return report.cached("series", lambda whole: (one for grid in all_grids(whole) for one in _series(grid)))


def series_of(table: Table) -> list[Series]:
    grid = read_grid(table)
    return _series(grid) if grid else []


def _series(grid: Grid) -> list[Series]:
    """The rows of a table by what they have in common; a row of fewest devices begins a series anew."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in grid.rows:
        groups.setdefault(row.key, []).append(row)
    return [Series(grid.table, tuple(part)) for rows in groups.values() for part in _parted(rows)]


def _parted(rows: list[Row]) -> Iterator[list[Row]]:
    counted = [row.devices for row in rows if row.devices is not None]
    fewest = min(counted, default=None)
    if fewest is None or counted.count(fewest) < 2:
        yield rows
        return
    part: list[Row] = []
    for row in rows:
        if row.devices == fewest and part:
            yield part
            part = []
        part.append(row)
    yield part


def precision_of(table: Table, row: Row, head: str) -> str | None:
    """The one precision that the head, the row or the headings name, nearest first; None where unclear."""
    for text in (head, " ".join(row.key), table.caption, *reversed(table.headings)):
        if precisions_in(text):
            return only_precision(text)
    return None
