"""The row that a row scales from: the fewest devices, of the same configuration."""

from __future__ import annotations

from trainmark.published.audit.claims.grid import Grid, Row
from trainmark.published.audit.claims.precision import CLASSES, only_precision
from trainmark.published.audit.claims.ratio import claimed_ratio

# A longer table is a listing, not a comparison; every row is looked at for every other.
MOST_ROWS = 400


def baselines(grid: Grid, row: Row) -> list[Row]:
    """Rows of fewer devices that share most with the row, the fewest first; nearest above where several."""
    if len(grid.rows) > MOST_ROWS:
        return []
    places = _precision_places(grid)
    fewer = [
        other
        for other in grid.rows
        if other.scale
        and row.scale
        and other.scale < row.scale
        and all(other.key[place] == row.key[place] for place in places)
    ]
    if not fewer:
        return []
    most = max(_shared(other, row) for other in fewer)
    closest = [other for other in fewer if _shared(other, row) == most]
    fewest = min(other.scale or 0 for other in closest)
    starts = [other for other in closest if other.scale == fewest]
    return sorted(starts, key=lambda other: (other.line > row.line, abs(other.line - row.line)))


def other_baselines(grid: Grid, row: Row) -> list[Row]:
    """All rows of the fewest devices: a report may scale from the best of them."""
    if len(grid.rows) > MOST_ROWS:
        return []
    places = _precision_places(grid)
    scales = [other.scale for other in grid.rows if other.scale]
    fewest = min(scales, default=0)
    return [
        other
        for other in grid.rows
        if other.scale == fewest
        and fewest < (row.scale or 0)
        and all(other.key[place] == row.key[place] for place in places)
    ]


def exact_baseline(grid: Grid, row: Row) -> Row | None:
    """The one row of the fewest devices that differs from the row in nothing else that is named."""
    rows = baselines(grid, row)
    if not rows or rows[0].key != row.key:
        return None
    above = [other for other in rows if other.line < row.line]
    return rows[0] if len(rows) == 1 or above[:1] == rows[:1] else None


def full_precision_rows(grid: Grid, row: Row) -> list[Row]:
    """Rows of full precision that differ from a row of reduced precision in nothing else."""
    places = _precision_places(grid)
    if len(places) != 1 or len(grid.rows) > MOST_ROWS or _class(row, places[0]) in (None, "full"):
        return []
    return [
        other
        for other in grid.rows
        if other.scale == row.scale
        and _class(other, places[0]) == "full"
        and _shared(other, row) == len(row.key) - 1
    ]


def _precision_places(grid: Grid) -> list[int]:
    """Where in a row's key its precision stands."""
    return [grid.keys.index(c.index) for c in grid.with_role("precision") if c.index in grid.keys]


def _class(row: Row, place: int) -> str | None:
    return CLASSES.get(only_precision(row.key[place]) or "")


def _shared(one: Row, other: Row) -> int:
    return sum(a == b for a, b in zip(one.key, other.key, strict=True))


def rows_of_one(grid: Grid, row: Row, column: int) -> list[Row]:
    """Rows whose own speed-up is printed as 1, those that share most with the row."""
    if len(grid.rows) > MOST_ROWS:
        return []
    ones = [
        other
        for other in grid.rows
        if other is not row and (own := other.in_column(column)) and claimed_ratio(own.number).value == 1
    ]
    most = max((_shared(other, row) for other in ones), default=0)
    return [other for other in ones if _shared(other, row) == most]
