"""What a column of speed-ups compares: more devices with fewer, or one precision with another.

A head binds its column: `Weak scaling - TF32` to the throughput of TF32, `Throughput speedup (FP32 to mixed
precision)` to the two throughputs of a row. A bare `Speedup` leaves it open, and the figures have to tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from trainmark.published.audit.claims.baseline import (
    baselines,
    full_precision_rows,
    other_baselines,
    rows_of_one,
)
from trainmark.published.audit.claims.columns import is_per_device, simplified
from trainmark.published.audit.claims.grid import Column, Grid, Row
from trainmark.published.audit.claims.precision import (
    CLASSES,
    precisions_in,
    same_class,
    without_precision,
)
from trainmark.published.audit.claims.ratio import Ratio, ratio_of
from trainmark.published.audit.report.number import Number, normal

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
RATES = ("throughput",)
TIMES = ("time_to_train", "step_time")

Rule = Callable[[Row], "list[tuple[Ratio, Row]]"]


@dataclass(frozen=True)
class Comparison:
    """One way to compute a column: for a row, the ratio and the row it is taken from, best first.

    `is_bound` is whether the head says so.
    """

    kind: str
    is_bound: bool
    rule: Rule


def comparisons(grid: Grid, column: Column) -> list[Comparison]:
    """All ways to compute a column of speed-ups, those that its head names first."""
    named = precisions_in(column.head)
    if SCALING.search(simplified(column.head)) or _is_of_one_precision(grid, column):
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


def _is_of_one_precision(grid: Grid, column: Column) -> bool:
    """`FP32 speedup` beside `AMP speedup`: each scales by itself, and neither is over the other."""
    if len(precisions_in(column.head)) != 1:
        return False
    rest = without_precision(column.head)
    others = [c for c in grid.with_role("speedup") if c is not column and c.precision]
    has_twin = any(without_precision(other.head) == rest for other in others)
    return has_twin or CLASSES.get(column.precision or "") == "full"


def _scaling(grid: Grid, column: Column, precision: str | None) -> Iterator[Comparison]:
    roles = _quantity(column) or RATES
    sources = _nearest(_of_precision(grid.with_role(*roles), precision), column)
    says_scaling = bool(SCALING.search(simplified(column.head)))
    is_bound = says_scaling and (precision is not None or len(sources) == 1)
    if not _quantity(column):
        sources += _of_precision(grid.with_role("time_to_train"), precision)
    for source in sources:
        yield Comparison("scaling", is_bound, _over_rows(source, partial(_starts, grid, column)))
    if not any(row.scale for row in grid.rows):
        for source in sources:
            starts = partial(rows_of_one, grid, column=column.index)
            yield Comparison("rows", False, _over_rows(source, starts))


def _starts(grid: Grid, column: Column, row: Row) -> list[Row]:
    """The rows to scale from: of the same batch where scaling is weak, else of any."""
    same = baselines(grid, row)
    return same if WEAK.search(simplified(column.head)) else [*same, *other_baselines(grid, row)]


def _over_rows(source: Column, starts: Callable[[Row], list[Row]]) -> Rule:
    inverse = source.role in TIMES

    def ratios(row: Row) -> list[tuple[Ratio, Row]]:
        quotients = []
        for start in starts(row):
            pair = (_value(start, source), _value(row, source))
            ratio = ratio_of(pair[0], pair[1]) if inverse else ratio_of(pair[1], pair[0])
            if ratio:
                quotients.append((ratio, start))
        return quotients

    return ratios


def _value(row: Row, column: Column) -> Number | None:
    """The figure of all devices together: a rate per device times the devices."""
    figure = row.in_column(column.index)
    if figure is None:
        return None
    each = column.role == "throughput" and is_per_device(column.head) and row.devices
    return figure.number.scaled(each) if each else figure.number


def _crossing(grid: Grid, column: Column, named: tuple[str, ...], is_bound: bool) -> Iterator[Comparison]:
    """One precision over another: side by side in a row, or in two rows that differ in nothing else."""
    roles = _quantity(column)
    pairs = [
        pair for pair in _pairs(grid, named) if not roles or pair[0].role in roles or pair[0].role is None
    ]
    for full, reduced in _nearest_pairs(pairs, column):
        yield Comparison("precision", is_bound and len(pairs) == 1, _crossing_rule(full, reduced))
    if not pairs:
        for source in grid.with_role(*(roles or (*RATES, *TIMES))):
            if source.precision is None:
                yield Comparison("precision", False, _over_rows(source, partial(full_precision_rows, grid)))


def _pairs(grid: Grid, named: tuple[str, ...]) -> list[tuple[Column, Column]]:
    """Columns that differ in nothing but the precision in their heads."""
    measured = [c for c in grid.columns if c.precision and c.role in (*RATES, *TIMES, None)]
    full = [c for c in measured if c.precision and CLASSES[c.precision] == "full"]
    reduced = [c for c in measured if c.precision and CLASSES[c.precision] != "full"]
    pairs = [
        (one, other)
        for one in full
        for other in reduced
        if one.role == other.role and without_precision(one.head) == without_precision(other.head)
    ]
    exact = [pair for pair in pairs if {pair[0].precision, pair[1].precision} <= set(named)]
    return exact or pairs or _only_pairs(full, reduced)


def _only_pairs(full: list[Column], reduced: list[Column]) -> list[tuple[Column, Column]]:
    """Of each quantity the one column of full and the one of reduced precision, however they are headed."""
    pairs = []
    for role in sorted({column.role for column in full if column.role}):
        one = [column for column in full if column.role == role]
        other = [column for column in reduced if column.role == role]
        if len(one) == len(other) == 1:
            pairs.append((one[0], other[0]))
    return pairs


def _crossing_rule(full: Column, reduced: Column) -> Rule:
    def ratios(row: Row) -> list[tuple[Ratio, Row]]:
        one, other = row.in_column(full.index), row.in_column(reduced.index)
        if one is None or other is None:
            return []
        above, below = (one, other) if full.role in TIMES else (other, one)
        ratio = ratio_of(above.number, below.number)
        return [(ratio, row)] if ratio else []

    return ratios


def _over_named_row(grid: Grid, column: Column) -> Iterator[Comparison]:
    """`Speedup over BF16`: over the one row of that name."""
    match = OVER.search(simplified(column.head))
    aliases = ALIASES.get(match[1], (match[1],)) if match else ()
    starts = [
        row
        for row in grid.rows
        if any(alias in normal(row.cells[0].text).lower() for alias in aliases)
        and row.in_column(column.index) is None
    ]
    if len(starts) == 1:
        for source in grid.with_role(*(_quantity(column) or (*RATES, *TIMES))):
            yield Comparison(
                "rows", False, _over_rows(source, lambda row: starts if row is not starts[0] else [])
            )


def _named_columns(grid: Grid, column: Column) -> Iterator[Comparison]:
    """`TensorRT/PyTorch speedup`: two columns by their names."""
    match = TWO_NAMES.search(simplified(column.head))
    for roles in (RATES, TIMES) if match else ():
        sources = grid.with_role(*roles)
        named = [[c for c in sources if _is_named(c, name)] for name in match.groups()] if match else []
        if [len(columns) for columns in named] == [1, 1] and named[0] != named[1]:
            above, below = named[0][0], named[1][0]
            pair = (above, below) if roles == TIMES else (below, above)
            yield Comparison("columns", False, _columns_rule(*pair))


def _is_named(column: Column, name: str) -> bool:
    return UNIT.sub("", simplified(column.head)).strip() == name


def _side_by_side(grid: Grid, column: Column) -> Iterator[Comparison]:
    """Two figures of a row of whatever meaning: the later over the earlier, or the reverse for times."""
    for roles in (RATES, ("time_to_train",), ("step_time",)):
        sources = grid.with_role(*roles)
        if len(sources) == 2:
            first, second = sources if roles == RATES else sources[::-1]
            yield Comparison("columns", False, _columns_rule(first, second))
            yield Comparison("columns", False, _columns_rule(second, first))


def _columns_rule(below: Column, above: Column) -> Rule:
    def ratios(row: Row) -> list[tuple[Ratio, Row]]:
        one, other = row.in_column(above.index), row.in_column(below.index)
        ratio = ratio_of(one.number, other.number) if one and other else None
        return [(ratio, row)] if ratio else []

    return ratios


def _quantity(column: Column) -> tuple[str, ...]:
    plain = simplified(column.head)
    return next((roles for pattern, roles in QUANTITIES if pattern.search(plain)), ())


def _of_precision(columns: tuple[Column, ...], precision: str | None) -> tuple[Column, ...]:
    """The columns of a precision by name, else by class; all where none is named on either side."""
    if precision is None or not any(column.precision for column in columns):
        return columns
    exact = tuple(column for column in columns if column.precision == precision)
    return exact or tuple(column for column in columns if same_class(column.precision, precision))


def _nearest(columns: tuple[Column, ...], column: Column) -> list[Column]:
    """Nearest to the left first."""
    return sorted(columns, key=lambda other: (other.index > column.index, abs(other.index - column.index)))


def _nearest_pairs(pairs: list[tuple[Column, Column]], column: Column) -> list[tuple[Column, Column]]:
    return sorted(pairs, key=lambda pair: abs(column.index - max(pair[0].index, pair[1].index)))
