"""What a column of speed-ups compares, and ratios of printed numbers with the bounds of their digits.

More devices are compared with fewer of the same configuration, or one precision with another. A head binds
its column: `Weak scaling - TF32` to the throughput of TF32, `Throughput speedup (FP32 to mixed precision)` to
the two throughputs of a row. A bare `Speedup` leaves it open, and the figures have to tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from trainmark.audit.grid import GridColumn, GridRow, TableGrid
from trainmark.audit.terms import (
    PRECISION_CLASSES,
    Number,
    is_per_device,
    normalize_text,
    only_precision,
    precisions_in,
    same_class,
    simplify_head,
    without_precision,
)

# A factor that is off by so much of its last digit was computed from figures with more digits than printed.
LAST_DIGIT = 1.5
# Less than this changes no conclusion: `167.00 %` is 166.67 % rounded once and printed with zeros.
NEGLIGIBLE = 0.0025


@dataclass(frozen=True)
class PrintedRatio:
    """A quotient, the least and the most that it can be."""

    value: float
    low: float
    high: float


def ratio_of(above: Number | None, below: Number | None) -> PrintedRatio | None:
    """The quotient of two printed numbers; None where one is missing, can be zero, or has another unit."""
    if above is None or below is None or above.low <= 0 or below.low <= 0:
        return None
    if (above.rest == "s") != (below.rest == "s"):
        return None
    return PrintedRatio(above.value / below.value, above.low / below.high, above.high / below.low)


def inverse(ratio: PrintedRatio) -> PrintedRatio:
    return PrintedRatio(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def claimed_ratio(number: Number) -> Number:
    """A printed speed-up as a factor: `779 %` is 7.79."""
    return number.scaled(0.01) if number.rest.startswith("%") else number


def agrees(claimed: Number, ratio: PrintedRatio) -> bool:
    """Whether a printed factor can be the ratio, give or take its last digit."""
    slack = max(LAST_DIGIT * claimed.unit, NEGLIGIBLE * ratio.value)
    return claimed.value - slack <= ratio.high and ratio.low <= claimed.value + slack


# A longer table is a listing, not a comparison; every row is looked at for every other.
MOST_ROWS = 400


def baselines(grid: TableGrid, row: GridRow) -> list[GridRow]:
    """Rows of fewer devices that share most with the row, the fewest first; nearest above where several."""
    fewer = [
        other
        for other in _of_same_precision(grid, row)
        if other.scale and row.scale and other.scale < row.scale
    ]
    if not fewer:
        return []
    most = max(_shared_columns(other, row) for other in fewer)
    closest = [other for other in fewer if _shared_columns(other, row) == most]
    fewest = min(other.scale or 0 for other in closest)
    starts = [other for other in closest if other.scale == fewest]
    return sorted(starts, key=lambda other: (other.line > row.line, abs(other.line - row.line)))


def other_baselines(grid: TableGrid, row: GridRow) -> list[GridRow]:
    """All rows of the fewest devices: a report may scale from the best of them."""
    fewest = min((other.scale for other in grid.rows if other.scale), default=0)
    if fewest >= (row.scale or 0):
        return []
    return [other for other in _of_same_precision(grid, row) if other.scale == fewest]


def exact_baseline(grid: TableGrid, row: GridRow) -> GridRow | None:
    """The one row of the fewest devices that differs from the row in nothing else that is named."""
    rows = baselines(grid, row)
    if not rows or rows[0].key != row.key:
        return None
    above = [other for other in rows if other.line < row.line]
    return rows[0] if len(rows) == 1 or above[:1] == rows[:1] else None


def full_precision_rows(grid: TableGrid, row: GridRow) -> list[GridRow]:
    """Rows of full precision that differ from a row of reduced precision in nothing else."""
    places = _precision_places(grid)
    if len(places) != 1 or len(grid.rows) > MOST_ROWS or _precision_class(row, places[0]) in (None, "full"):
        return []
    return [
        other
        for other in grid.rows
        if other.scale == row.scale
        and _precision_class(other, places[0]) == "full"
        and _shared_columns(other, row) == len(row.key) - 1
    ]


def _of_same_precision(grid: TableGrid, row: GridRow) -> list[GridRow]:
    """The rows to compare a row with that have its precision; none in a listing."""
    if len(grid.rows) > MOST_ROWS:
        return []
    places = _precision_places(grid)
    return [other for other in grid.rows if all(other.key[place] == row.key[place] for place in places)]


def _precision_places(grid: TableGrid) -> list[int]:
    """Where in a row's key its precision stands."""
    return [grid.keys.index(c.index) for c in grid.with_role("precision") if c.index in grid.keys]


def _precision_class(row: GridRow, place: int) -> str | None:
    return PRECISION_CLASSES.get(only_precision(row.key[place]) or "")


def _shared_columns(one: GridRow, other: GridRow) -> int:
    return sum(a == b for a, b in zip(one.key, other.key, strict=True))


def rows_of_one(grid: TableGrid, row: GridRow, column: int) -> list[GridRow]:
    """Rows whose own speed-up is printed as 1, those that share most with the row."""
    if len(grid.rows) > MOST_ROWS:
        return []
    ones = [
        other
        for other in grid.rows
        if other is not row and (own := other.in_column(column)) and claimed_ratio(own.number).value == 1
    ]
    most = max((_shared_columns(other, row) for other in ones), default=0)
    return [other for other in ones if _shared_columns(other, row) == most]


SCALING = re.compile(r"\bscal(?:ing|e)\b|加速比|扩展|scalability")
WEAK = re.compile(r"\bweak\b|弱扩展")
QUANTITIES = (
    (re.compile(r"time|耗时|时间"), ("time_to_train",)),
    (re.compile(r"latency|延迟"), ("step_time",)),
    (re.compile(r"throughput|吞吐"), ("throughput",)),
)
TWO_NAMES = re.compile(r"([\w.+-]{2,40}) ?(?:/|over|vs\.?) ?([\w.+-]{2,40})")
OVER = re.compile(r"\b(?:over|vs\.?|against|relative to) (?:the )?([\w.+-]{2,40})")
ALIASES = {"bf16": ("bf16", "bfloat16"), "bfloat16": ("bf16", "bfloat16"), "fp16": ("fp16", "float16")}
UNIT = re.compile(r"[(\[][^)\]]*[)\]]")
RATE_QUANTITIES = ("throughput",)
TIME_QUANTITIES = ("time_to_train", "step_time")

RatioRule = Callable[[GridRow], list[tuple[PrintedRatio, GridRow]]]


@dataclass(frozen=True)
class SpeedupComparison:
    """One way to compute a column: for a row, the ratio and the row it is taken from, best first.

    `is_bound` is whether the head says so.
    """

    kind: str
    is_bound: bool
    rule: RatioRule


def comparisons(grid: TableGrid, column: GridColumn) -> list[SpeedupComparison]:
    """All ways to compute a column of speed-ups, those that its head names first."""
    named = precisions_in(column.head)
    if SCALING.search(simplify_head(column.head)) or _is_of_one_precision(grid, column):
        return [*_scaling(grid, column, named[0] if len(named) == 1 else None)]
    if named:
        return [*_crossing(grid, column, named, is_bound=True), *_over_named_row(grid, column)]
    return [
        *_over_named_row(grid, column),
        *_scaling(grid, column, None),
        *_crossing(grid, column, (), is_bound=False),
        *_named_columns(grid, column),
        *_side_by_side(grid, column),
    ]


def _is_of_one_precision(grid: TableGrid, column: GridColumn) -> bool:
    """`FP32 speedup` beside `AMP speedup`: each scales by itself, and neither is over the other."""
    if len(precisions_in(column.head)) != 1:
        return False
    rest = without_precision(column.head)
    others = [c for c in grid.with_role("speedup") if c is not column and c.precision]
    has_twin = any(without_precision(other.head) == rest for other in others)
    return has_twin or PRECISION_CLASSES.get(column.precision or "") == "full"


def _scaling(grid: TableGrid, column: GridColumn, precision: str | None) -> Iterator[SpeedupComparison]:
    roles = _quantity(column) or RATE_QUANTITIES
    sources = _nearest(_of_precision(grid.with_role(*roles), precision), column)
    says_scaling = bool(SCALING.search(simplify_head(column.head)))
    is_bound = says_scaling and (precision is not None or len(sources) == 1)
    if not _quantity(column):
        sources += _of_precision(grid.with_role("time_to_train"), precision)
    for source in sources:
        yield SpeedupComparison("scaling", is_bound, _over_rows(source, partial(_starts, grid, column)))
    if not any(row.scale for row in grid.rows):
        for source in sources:
            starts = partial(rows_of_one, grid, column=column.index)
            yield SpeedupComparison("rows", False, _over_rows(source, starts))


def _starts(grid: TableGrid, column: GridColumn, row: GridRow) -> list[GridRow]:
    """The rows to scale from: of the same batch where scaling is weak, else of any."""
    same = baselines(grid, row)
    return same if WEAK.search(simplify_head(column.head)) else [*same, *other_baselines(grid, row)]


def _over_rows(source: GridColumn, starts: Callable[[GridRow], list[GridRow]]) -> RatioRule:
    inverse = source.role in TIME_QUANTITIES

    def ratios(row: GridRow) -> list[tuple[PrintedRatio, GridRow]]:
        quotients = []
        for start in starts(row):
            pair = (_value(start, source), _value(row, source))
            ratio = ratio_of(pair[0], pair[1]) if inverse else ratio_of(pair[1], pair[0])
            if ratio:
                quotients.append((ratio, start))
        return quotients

    return ratios


def _value(row: GridRow, column: GridColumn) -> Number | None:
    """The figure of all devices together: a rate per device times the devices."""
    figure = row.in_column(column.index)
    if figure is None:
        return None
    each = column.role == "throughput" and is_per_device(column.head) and row.devices
    return figure.number.scaled(each) if each else figure.number


def _crossing(
    grid: TableGrid, column: GridColumn, named: tuple[str, ...], is_bound: bool
) -> Iterator[SpeedupComparison]:
    """One precision over another: side by side in a row, or in two rows that differ in nothing else."""
    roles = _quantity(column)
    pairs = [
        pair for pair in _pairs(grid, named) if not roles or pair[0].role in roles or pair[0].role is None
    ]
    for full, reduced in _nearest_pairs(pairs, column):
        yield SpeedupComparison("precision", is_bound and len(pairs) == 1, _crossing_rule(full, reduced))
    if not pairs:
        for source in grid.with_role(*(roles or (*RATE_QUANTITIES, *TIME_QUANTITIES))):
            if source.precision is None:
                yield SpeedupComparison(
                    "precision", False, _over_rows(source, partial(full_precision_rows, grid))
                )


def _pairs(grid: TableGrid, named: tuple[str, ...]) -> list[tuple[GridColumn, GridColumn]]:
    """Columns that differ in nothing but the precision in their heads."""
    measured = [
        c for c in grid.columns if c.precision and c.role in (*RATE_QUANTITIES, *TIME_QUANTITIES, None)
    ]
    full = [c for c in measured if c.precision and PRECISION_CLASSES[c.precision] == "full"]
    reduced = [c for c in measured if c.precision and PRECISION_CLASSES[c.precision] != "full"]
    pairs = [
        (one, other)
        for one in full
        for other in reduced
        if one.role == other.role and without_precision(one.head) == without_precision(other.head)
    ]
    exact = [pair for pair in pairs if {pair[0].precision, pair[1].precision} <= set(named)]
    return exact or pairs or _only_pairs(full, reduced)


def _only_pairs(full: list[GridColumn], reduced: list[GridColumn]) -> list[tuple[GridColumn, GridColumn]]:
    """Of each quantity the one column of full and the one of reduced precision, however they are headed."""
    pairs = []
    for role in sorted({column.role for column in full if column.role}):
        one = [column for column in full if column.role == role]
        other = [column for column in reduced if column.role == role]
        if len(one) == len(other) == 1:
            pairs.append((one[0], other[0]))
    return pairs


def _crossing_rule(full: GridColumn, reduced: GridColumn) -> RatioRule:
    def ratios(row: GridRow) -> list[tuple[PrintedRatio, GridRow]]:
        one, other = row.in_column(full.index), row.in_column(reduced.index)
        if one is None or other is None:
            return []
        above, below = (one, other) if full.role in TIME_QUANTITIES else (other, one)
        ratio = ratio_of(above.number, below.number)
        return [(ratio, row)] if ratio else []

    return ratios


def _over_named_row(grid: TableGrid, column: GridColumn) -> Iterator[SpeedupComparison]:
    """`Speedup over BF16`: over the one row of that name."""
    match = OVER.search(simplify_head(column.head))
    aliases = ALIASES.get(match[1], (match[1],)) if match else ()
    starts = [
        row
        for row in grid.rows
        if any(alias in normalize_text(row.cells[0].text).lower() for alias in aliases)
        and row.in_column(column.index) is None
    ]
    if len(starts) == 1:
        for source in grid.with_role(*(_quantity(column) or (*RATE_QUANTITIES, *TIME_QUANTITIES))):
            yield SpeedupComparison(
                "rows", False, _over_rows(source, lambda row: starts if row is not starts[0] else [])
            )


def _named_columns(grid: TableGrid, column: GridColumn) -> Iterator[SpeedupComparison]:
    """`TensorRT/PyTorch speedup`: two columns by their names."""
    match = TWO_NAMES.search(simplify_head(column.head))
    for roles in (RATE_QUANTITIES, TIME_QUANTITIES) if match else ():
        sources = grid.with_role(*roles)
        named = [[c for c in sources if _is_named(c, name)] for name in match.groups()] if match else []
        if [len(columns) for columns in named] == [1, 1] and named[0] != named[1]:
            above, below = named[0][0], named[1][0]
            pair = (above, below) if roles == TIME_QUANTITIES else (below, above)
            yield SpeedupComparison("columns", False, _columns_rule(*pair))


def _is_named(column: GridColumn, name: str) -> bool:
    return UNIT.sub("", simplify_head(column.head)).strip() == name


def _side_by_side(grid: TableGrid, column: GridColumn) -> Iterator[SpeedupComparison]:
    """Two figures of a row of whatever meaning: the later over the earlier, or the reverse for times."""
    for roles in (RATE_QUANTITIES, ("time_to_train",), ("step_time",)):
        sources = grid.with_role(*roles)
        if len(sources) == 2:
            first, second = sources if roles == RATE_QUANTITIES else sources[::-1]
            yield SpeedupComparison("columns", False, _columns_rule(first, second))
            yield SpeedupComparison("columns", False, _columns_rule(second, first))


def _columns_rule(below: GridColumn, above: GridColumn) -> RatioRule:
    def ratios(row: GridRow) -> list[tuple[PrintedRatio, GridRow]]:
        one, other = row.in_column(above.index), row.in_column(below.index)
        ratio = ratio_of(one.number, other.number) if one and other else None
        return [(ratio, row)] if ratio else []

    return ratios


def _quantity(column: GridColumn) -> tuple[str, ...]:
    plain = simplify_head(column.head)
    return next((roles for pattern, roles in QUANTITIES if pattern.search(plain)), ())


def _of_precision(columns: tuple[GridColumn, ...], precision: str | None) -> tuple[GridColumn, ...]:
    """The columns of a precision by name, else by class; all where none is named on either side."""
    if precision is None or not any(column.precision for column in columns):
        return columns
    exact = tuple(column for column in columns if column.precision == precision)
    return exact or tuple(column for column in columns if same_class(column.precision, precision))


def _nearest(columns: tuple[GridColumn, ...], column: GridColumn) -> list[GridColumn]:
    """Nearest to the left first."""
    return sorted(columns, key=lambda other: (other.index > column.index, abs(other.index - column.index)))


def _nearest_pairs(
    pairs: list[tuple[GridColumn, GridColumn]], column: GridColumn
) -> list[tuple[GridColumn, GridColumn]]:
    return sorted(pairs, key=lambda pair: abs(column.index - max(pair[0].index, pair[1].index)))
