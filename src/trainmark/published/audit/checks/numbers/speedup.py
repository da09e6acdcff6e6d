"""Speed-ups against the figures that they were computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmark.published.audit.claims.grid import Column, Figure, Grid, Row, all_grids
from trainmark.published.audit.claims.ratio import Ratio, agrees, claimed_ratio, inverse
from trainmark.published.audit.claims.ratio_columns import Comparison, comparisons
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

CODE = "speedup-mismatch"
# Where no head says what a column compares, this many rows have to agree for one that does not.
AGREEING_FOR_EACH_WRONG = 2
MOST_ALL_WRONG = 3


@dataclass(frozen=True)
class Claim:
    """A printed speed-up, the ratio that it should be, and the row that the ratio is taken from."""

    column: Column
    row: Row
    figure: Figure
    ratio: Ratio
    start: Row
    kind: str

    @property
    def number(self) -> Number:
        return claimed_ratio(self.figure.number)


def check(report: Report) -> Iterator[Finding]:
    for grid in all_grids(report):
        wrong = [claim for column in grid.with_role("speedup") for claim in _wrong(grid, column)]
        for claims in _by_row(wrong):
            yield from _findings(report, claims)


def _wrong(grid: Grid, column: Column) -> list[Claim]:
    """The claims of a column that no way to compute it explains."""
    rows = [(row, figure) for row in grid.rows if (figure := row.in_column(column.index))]
    tried = [(way, *_judged(way, column, rows)) for way in comparisons(grid, column)]
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


def _is_base(wrong: list[Claim]) -> bool:
    """Whether a row that should have scaled says 1: the column starts from there."""
    return any(claim.number.value == 1 for claim in wrong)


def _upside_down(wrong: list[Claim], claims: list[Claim], way: Comparison) -> list[Claim]:
    """The first of speed-ups that are all printed the wrong way round."""
    is_inverse = way.kind == "precision" and all(agrees(c.number, inverse(c.ratio)) for c in wrong)
    return [replace(wrong[0], kind="inverse")] if is_inverse and wrong and len(wrong) == len(claims) else []


def _judged(
    way: Comparison, column: Column, rows: list[tuple[Row, Figure]]
) -> tuple[list[Claim], list[Claim]]:
    """All claims that a way can be tried on, and those that it does not give."""
    claims, failures = [], []
    for row, figure in rows:
        ratios = way.rule(row)
        if not ratios:
            continue
        claim = Claim(column, row, figure, *ratios[0], way.kind)
        claims.append(claim)
        if not any(_gives(claim.number, figure, ratio) for ratio, _ in ratios):
            failures.append(claim)
    return claims, failures


def _gives(claimed: Number, figure: Figure, ratio: Ratio) -> bool:
    """Whether the claim is the ratio, or the gain over one where it is given in percent."""
    if agrees(claimed, ratio):
        return True
    gain = Ratio(ratio.value - 1, ratio.low - 1, ratio.high - 1)
    return figure.number.rest.startswith("%") and agrees(claimed, gain)


def _starts_at_one(column: Column, claims: list[Claim]) -> bool:
    """Whether the rows scaled from say 1, or nothing."""
    own = [claim.start.in_column(column.index) for claim in claims]
    return all(figure is None or claimed_ratio(figure.number).value == 1 for figure in own)


def _of_one_cause(wrong: list[Claim], claims: list[Claim]) -> list[Claim]:
    """Of speed-ups that all start from one other figure, the first alone."""
    if len(wrong) < 2 or len(wrong) < len(claims) or any(claim.kind != "scaling" for claim in wrong):
        return wrong
    if len({claim.start.line for claim in wrong}) > 1:
        return wrong
    low = max(claim.ratio.low / (claim.number.value + claim.number.unit) for claim in wrong)
    high = min(claim.ratio.high / max(claim.number.low, 1e-9) for claim in wrong)
    return wrong[:1] if low <= high else wrong


def _by_row(wrong: list[Claim]) -> Iterator[list[Claim]]:
    rows: dict[int, list[Claim]] = {}
    for claim in wrong:
        rows.setdefault(id(claim.row), []).append(claim)
    yield from rows.values()


def _findings(report: Report, claims: list[Claim]) -> Iterator[Finding]:
    if len(claims) == 2 and _are_exchanged(*claims):
        one, other = claims
        yield Finding(
            CODE,
            Severity.ERROR,
            report.where(one.figure.cell.line),
            claimed=f"{one.figure.cell.text} and {other.figure.cell.text}",
            derived=f"{_printed(one)} and {_printed(other)}",
            message=f"the columns “{one.figure.head}” and “{other.figure.head}” are exchanged.",
        )
        return
    for claim in claims:
        yield Finding(
            CODE,
            Severity.ERROR,
            report.where(claim.figure.cell.line),
            claimed=claim.figure.cell.text,
            derived=_printed(claim),
            message=_message(claim),
        )


def _are_exchanged(one: Claim, other: Claim) -> bool:
    same = one.kind == other.kind == "scaling"
    return same and agrees(one.number, other.ratio) and agrees(other.number, one.ratio)


def _printed(claim: Claim) -> str:
    places = max(claim.figure.number.decimals, 2)
    return f"{claim.ratio.value:.{places}f}"


def _message(claim: Claim) -> str:
    if claim.kind == "inverse":
        return f"the ratio is {_printed(claim)}: the column “{claim.figure.head}” is the wrong way round."
    if claim.start is claim.row:
        return f"the ratio of the two figures in this row is {_printed(claim)}."
    if claim.kind == "scaling":
        counted = f"{claim.row.devices} devices" if claim.row.devices else f"{claim.row.nodes} nodes"
        return f"the speed-up of {counted} is {_printed(claim)} by the row on line {claim.start.line}."
    return f"the ratio to the row on line {claim.start.line} is {_printed(claim)}."
