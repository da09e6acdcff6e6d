"""Speed-ups against the figures that they were computed from, in the same table or in another one.

Of another table: an option, one machine over another, one precision over another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import (
    COUNT_ROLES,
    MEASURED_ROLES,
    GridColumn,
    GridRow,
    TableFigure,
    TableGrid,
    all_grids,
)
from trainmark.audit.ratios import (
    PrintedRatio,
    SpeedupComparison,
    agrees,
    claimed_ratio,
    comparisons,
    inverse,
    ratio_of,
)
from trainmark.audit.report import Report
from trainmark.audit.terms import PRECISION_CLASSES, Number, normalize_text, precisions_in, simplify_head

SPEEDUP_CODE = "speedup-mismatch"
# Where no head says what a column compares, this many rows have to agree for one that does not.
AGREEING_FOR_EACH_WRONG = 2
MOST_ALL_WRONG = 3


@dataclass(frozen=True)
class SpeedupClaim:
    """A printed speed-up, the ratio that it should be, and the row that the ratio is taken from."""

    column: GridColumn
    row: GridRow
    figure: TableFigure
    ratio: PrintedRatio
    start: GridRow
    kind: str

    @property
    def number(self) -> Number:
        return claimed_ratio(self.figure.number)


def check_speedups(report: Report) -> Findings:
    for grid in all_grids(report):
        wrong = [claim for column in grid.with_role("speedup") for claim in _wrong_claims(grid, column)]
        for claims in _by_row(wrong):
            yield from _findings(claims)


def _wrong_claims(grid: TableGrid, column: GridColumn) -> list[SpeedupClaim]:
    """The claims of a column that no way to compute it explains."""
    rows = [(row, figure) for row in grid.rows if (figure := row.in_column(column.index))]
    tried = [(way, *_try_comparison(way, column, rows)) for way in comparisons(grid, column)]
    usable = [one for one in tried if one[1]]
    # What the head says holds; where it says nothing, whatever explains most.
    pool = [one for one in usable if one[0].is_bound] or usable
    if not pool:
        return []
    way, claims, failures = min(pool, key=lambda one: (len(one[2]) - len(one[1]), len(one[2])))
    explained = {id(c.row) for _, others, failed in pool for c in others if c not in failed}
    wrong = [claim for claim in failures if id(claim.row) not in explained]
    is_certain = way.is_bound or (way.kind == "scaling" and len(grid.with_role("throughput")) == 1)
    if way.kind == "scaling" and (not _starts_at_one(column, claims) or _is_base(wrong)):
        is_certain = False
    if not is_certain and len(wrong) * AGREEING_FOR_EACH_WRONG > len(claims) - len(wrong):
        return []
    if inverted := _upside_down(wrong, claims, way):
        return inverted
    # A ratio that no row of several follows is not what the column holds.
    if way.kind == "precision" and len(wrong) == len(claims) >= MOST_ALL_WRONG:
        return []
    return _of_one_cause(wrong, claims)


def _is_base(wrong: list[SpeedupClaim]) -> bool:
    """Whether a row that should have scaled says 1: the column starts from there."""
    return any(claim.number.value == 1 for claim in wrong)


def _upside_down(
    wrong: list[SpeedupClaim], claims: list[SpeedupClaim], way: SpeedupComparison
) -> list[SpeedupClaim]:
    """The first of speed-ups that are all printed the wrong way round."""
    is_inverse = way.kind == "precision" and all(agrees(c.number, inverse(c.ratio)) for c in wrong)
    return [replace(wrong[0], kind="inverse")] if is_inverse and wrong and len(wrong) == len(claims) else []


def _try_comparison(
    way: SpeedupComparison, column: GridColumn, rows: list[tuple[GridRow, TableFigure]]
) -> tuple[list[SpeedupClaim], list[SpeedupClaim]]:
    """All claims that a way can be tried on, and those that it does not give."""
    claims, failures = [], []
    for row, figure in rows:
        ratios = way.rule(row)
        if not ratios:
            continue
        claim = SpeedupClaim(column, row, figure, *ratios[0], way.kind)
        claims.append(claim)
        if not any(_gives(claim.number, figure, ratio) for ratio, _ in ratios):
            failures.append(claim)
    return claims, failures


def _gives(claimed: Number, figure: TableFigure, ratio: PrintedRatio) -> bool:
    """Whether the claim is the ratio, or the gain over one where it is given in percent."""
    if agrees(claimed, ratio):
        return True
    gain = PrintedRatio(ratio.value - 1, ratio.low - 1, ratio.high - 1)
    return figure.number.rest.startswith("%") and agrees(claimed, gain)


def _starts_at_one(column: GridColumn, claims: list[SpeedupClaim]) -> bool:
    """Whether the rows scaled from say 1, or nothing."""
    own = [claim.start.in_column(column.index) for claim in claims]
    return all(figure is None or claimed_ratio(figure.number).value == 1 for figure in own)


def _of_one_cause(wrong: list[SpeedupClaim], claims: list[SpeedupClaim]) -> list[SpeedupClaim]:
    """Of speed-ups that all start from one other figure, the first alone."""
    if len(wrong) < 2 or len(wrong) < len(claims) or any(claim.kind != "scaling" for claim in wrong):
        return wrong
    if len({claim.start.line for claim in wrong}) > 1:
        return wrong
    low = max(claim.ratio.low / (claim.number.value + claim.number.unit) for claim in wrong)
    high = min(claim.ratio.high / max(claim.number.low, 1e-9) for claim in wrong)
    return wrong[:1] if low <= high else wrong


def _by_row(wrong: list[SpeedupClaim]) -> Iterator[list[SpeedupClaim]]:
    rows: dict[int, list[SpeedupClaim]] = {}
    for claim in wrong:
        rows.setdefault(id(claim.row), []).append(claim)
    yield from rows.values()


def _findings(claims: list[SpeedupClaim]) -> Findings:
    if len(claims) == 2 and _are_exchanged(*claims):
        one, other = claims
        claimed = f"{one.figure.cell.text} and {other.figure.cell.text}"
        derived = f"{_printed(one)} and {_printed(other)}"
        message = f"the columns “{one.figure.head}” and “{other.figure.head}” are exchanged."
        yield AuditFinding(SPEEDUP_CODE, one.figure.cell.line, claimed, derived, message)
        return
    for claim in claims:
        claimed = claim.figure.cell.text
        derived = _printed(claim)
        message = _message(claim)
        yield AuditFinding(SPEEDUP_CODE, claim.figure.cell.line, claimed, derived, message)


def _are_exchanged(one: SpeedupClaim, other: SpeedupClaim) -> bool:
    same = one.kind == other.kind == "scaling"
    return same and agrees(one.number, other.ratio) and agrees(other.number, one.ratio)


def _printed(claim: SpeedupClaim) -> str:
    places = max(claim.figure.number.decimals, 2)
    return f"{claim.ratio.value:.{places}f}"


def _message(claim: SpeedupClaim) -> str:
    if claim.kind == "inverse":
        return f"the ratio is {_printed(claim)}: the column “{claim.figure.head}” is the wrong way round."
    if claim.start is claim.row:
        return f"the ratio of the two figures in this row is {_printed(claim)}."
    if claim.kind == "scaling":
        counted = f"{claim.row.devices} devices" if claim.row.devices else f"{claim.row.nodes} nodes"
        return f"the speed-up of {counted} is {_printed(claim)} by the row on line {claim.start.line}."
    return f"the ratio to the row on line {claim.start.line} is {_printed(claim)}."


# So many tables before are looked at.
TABLES_BEFORE = 4
# An option is on or off; a column of more values is none.
MOST_VALUES = 3
LEAST_AGREEING = 2

Attributes = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class MeasuredThroughput:
    """A throughput with all that its row says of its configuration."""

    attributes: Attributes
    number: Number
    line: int


def check_ratio_tables(report: Report) -> Findings:
    grids = all_grids(report)
    for index, grid in enumerate(grids):
        speedups = grid.with_role("speedup")
        if len(speedups) != 1:
            continue
        if not grid.with_role("throughput", "time_to_train", "step_time"):
            before = [
                other
                for other in grids[max(0, index - TABLES_BEFORE) : index]
                if other.with_role("throughput")
            ]
            ways = _table_ratios([_measured(source) for source in before[::-1]])
            yield from _compare_tables(grid, speedups[0].index, ways)
        elif _compares_precisions(grid, speedups[0]):
            # The other precision has a table of its own, beside this one.
            beside = [*grids[index + 1 : index + 2], *grids[max(0, index - 1) : index]]
            own = _by_attributes(_measured(grid))
            yield from _compare_tables(
                grid,
                speedups[0].index,
                (_ratios(own, _by_attributes(_measured(other))) for other in beside),
            )


def _compares_precisions(grid: TableGrid, column: GridColumn) -> bool:
    """Whether the one throughput of a table is of one of the precisions that its speed-up is between."""
    rates = grid.with_role("throughput")
    return bool(precisions_in(column.head)) and len(rates) == 1 and rates[0].precision is None


def _compare_tables(
    grid: TableGrid, column: int, ways: Iterable[dict[Attributes, tuple[PrintedRatio, int]]]
) -> Findings:
    claims = [(_attributes(grid, row), row) for row in grid.rows if row.in_column(column)]
    best: list[tuple[GridRow, PrintedRatio, int]] = []
    wrong: list[tuple[GridRow, PrintedRatio, int]] = []
    for ratios in ways:
        tried = [(row, *ratios[key]) for key, row in claims if key in ratios]
        failing = [one for one in tried if not _row_agrees(one[0], column, one[1])]
        if len(tried) - len(failing) > len(best) - len(wrong):
            best, wrong = tried, failing
    agreeing = len(best) - len(wrong)
    if agreeing < LEAST_AGREEING or len(wrong) * AGREEING_FOR_EACH_WRONG > agreeing:
        return
    for row, ratio, line in wrong:
        figure = row.in_column(column)
        if figure:
            derived = f"{ratio.value:.{max(2, figure.number.decimals)}f}"
            message = f"the figures on line {line} and its counterpart give {ratio.value:.3f}."
            yield AuditFinding("speedup-mismatch", figure.cell.line, figure.cell.text, derived, message)


def _row_agrees(row: GridRow, column: int, ratio: PrintedRatio) -> bool:
    figure = row.in_column(column)
    return figure is not None and agrees(claimed_ratio(figure.number), ratio)


def _table_ratios(
    tables: list[list[MeasuredThroughput]],
) -> Iterator[dict[Attributes, tuple[PrintedRatio, int]]]:
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
    above: dict[Attributes, MeasuredThroughput], below: dict[Attributes, MeasuredThroughput]
) -> dict[Attributes, tuple[PrintedRatio, int]]:
    ratios = {}
    for key, one in above.items():
        ratio = ratio_of(one.number, below[key].number) if key in below else None
        if ratio:
            ratios[key] = (ratio, one.line)
    return ratios


def _of_value(table: list[MeasuredThroughput], name: str, value: str) -> dict[Attributes, MeasuredThroughput]:
    """The figures that have a value of an attribute, by all the others."""
    return {one.attributes - {(name, value)}: one for one in table if (name, value) in one.attributes}


def _by_attributes(table: list[MeasuredThroughput]) -> dict[Attributes, MeasuredThroughput]:
    return {one.attributes: one for one in table}


def _measured(grid: TableGrid) -> list[MeasuredThroughput]:
    measurements = []
    for row in grid.rows:
        for figure in row.of("throughput"):
            attributes = _attributes(grid, row, grid.columns[figure.column].precision)
            measurements.append(MeasuredThroughput(attributes, figure.number, figure.cell.line))
    return measurements


def _attributes(grid: TableGrid, row: GridRow, precision: str | None = None) -> Attributes:
    """Devices, class of precision, and every other cell that tells the configuration."""
    named = {("precision", PRECISION_CLASSES[precision])} if precision else set()
    for column in grid.columns:
        text = normalize_text(row.cells[column.index].text)
        classes = {PRECISION_CLASSES[name] for name in precisions_in(text)}
        if column.role == "precision" and len(classes) == 1:
            named.add(("precision", classes.pop()))
        elif column.role not in MEASURED_ROLES and column.role not in COUNT_ROLES:
            named.add((simplify_head(column.head), text.lower()))
    return frozenset(named | {("devices", str(row.devices))})
