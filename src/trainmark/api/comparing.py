"""Runs against a baseline: the ratio of each case with its interval, and what else differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.api.runs import Run, open, priced
from trainmark.api.shown import Shown, Tabular
from trainmark.base.errors import UserError
from trainmark.logs.ledger import load_for
from trainmark.logs.ledger.standing import standing
from trainmark.measure.comparison import (
    ResultComparison,
    cannot_be_judged,
    compare_results,
    fails_below,
    unmatched_keys,
)
from trainmark.measure.cost import Price, cost_of
from trainmark.measure.figure import Result
from trainmark.measure.history.facts import FactChange, settings_that_differ
from trainmark.measure.history.series import RunPoint
from trainmark.measure.key import Key
from trainmark.measure.statistics import CONFIDENCE
from trainmark.pages import label
from trainmark.pages.comparison import (
    ComparisonRow,
    Comparisons,
    ComparisonTable,
    Frameworks,
    comparisons_record,
    peak_shares,
)
from trainmark.pages.comparison_page import comparison_page
from trainmark.pages.run.answer import doubts_verdict
from trainmark.pages.run.frameworks import framework_tables, table_blocks
from trainmark.pages.run.record import framework_record
from trainmark.pages.standing import standing_line
from trainmark.store.observations import points_of
from trainmark.store.report import Conformance, conformance_of, results_of, standings_of_frameworks
from trainmark.store.run import RunFolder
from trainmark.view.blocks import Page, Section
from trainmark.view.message import _


@dataclass(frozen=True)
class FailLimit:
    """The ratio below which a comparison fails, and whether an undecided row fails it too."""

    below: float | None = None
    unsure: bool = False

    def fails(self, pair: ResultComparison) -> bool:
        return self.below is not None and fails_below(pair, self.below, self.unsure)

    def leaves_open(self, pair: ResultComparison) -> bool:
        return self.below is not None and not self.unsure and cannot_be_judged(pair, self.below)


@dataclass(frozen=True)
class Comparison(Comparisons, Shown, Tabular):
    """Runs against a baseline, case by case."""

    def page(self) -> Page:
        return comparison_page(self)

    def to_dict(self) -> dict[str, Any]:
        return comparisons_record(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return each case of each pair of runs."""
        record = self.to_dict()
        return [
            {"before": pair["before"], "after": pair["after"], **row}
            for pair in record["comparisons"]
            for row in pair["rows"]
        ]


def compare(
    before: str | Path | Run,
    *after: str | Path | Run,
    runs: str | Path = "runs",
    price: str | Price | None = None,
    limit: FailLimit = FailLimit(),  # noqa: B008
) -> Comparison:
    """Compare each run with the first: the ratio with its interval for each case that both have."""
    if not after:
        raise UserError("name a run to compare with the first.")
    sides = [_side(run, runs) for run in (before, *after)]
    cost, (first, *others) = priced(price), sides
    names = label.distinguishing(result.key for side in sides for result in side.results)
    tables = tuple(_table(first, side, names, limit, cost) for side in others)
    frameworks = _frameworks_between(sides)
    for side, table in zip(others, tables, strict=True):
        if not table.rows and (limit.below is not None or not frameworks):
            listed = "see `trainmark show` of each"
            raise UserError(f"{first.name} and {side.name} have no case in common; {listed}.")
    return Comparison(tables, frameworks, str(cost) if cost else "")


@dataclass(frozen=True)
class Side:
    """A run with its results, and what was recorded of each."""

    folder: RunFolder
    results: tuple[Result, ...]
    points: dict[Key, RunPoint]

    @property
    def name(self) -> str:
        return self.folder.path.name


def _side(run: str | Path | Run, runs: str | Path) -> Side:
    folder = run.folder if isinstance(run, Run) else open(run, runs).folder
    return Side(folder, results_of(folder.records()), points_of(folder))


def _table(
    before: Side, after: Side, names: Sequence[str], limit: FailLimit, price: Price | None
) -> ComparisonTable:
    def case(key: Key) -> str:
        return f"{label.series(key, names)} {key.topology}"

    def row(pair: ResultComparison) -> ComparisonRow:
        points = before.points[pair.before.key], after.points[pair.after.key]
        return _row(pair, case(pair.before.key), differences_of(pair, *points), limit, price)

    only_old, only_new = unmatched_keys(before.results, after.results)
    return ComparisonTable(
        before=before.name,
        after=after.name,
        rows=tuple(map(row, compare_results(before.results, after.results))),
        only_before=tuple(map(case, only_old)),
        only_after=tuple(map(case, only_new)),
    )


def differences_of(pair: ResultComparison, before: RunPoint, after: RunPoint) -> tuple[FactChange, ...]:
    """Return the parts of the key that differ, and the recorded settings."""
    settings = settings_that_differ(before, after)
    known = {fact.name for fact in settings}
    keys = ((name, pair.before.key.value(name), pair.after.key.value(name)) for name in pair.differs)
    own = (FactChange(name, _text(old), _text(new), 1.0) for name, old, new in keys if name not in known)
    return (*own, *settings)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _row(
    pair: ResultComparison,
    case: str,
    differences: tuple[FactChange, ...],
    limit: FailLimit,
    price: Price | None,
) -> ComparisonRow:
    """Bounds of less than the usual confidence, all that a few trials carry, are left out."""

    def codes(result: Result) -> tuple[str, ...]:
        return tuple(doubt.code.value for doubt in result.doubts)

    bounds = pair.ratio.interval
    sure = bounds is not None and bounds.confidence >= CONFIDENCE
    key, throughput, unit = pair.after.key, pair.after.throughput, label.rate_unit(pair.after.unit)
    return ComparisonRow(
        case=case,
        before=pair.before.throughput,
        after=pair.after.throughput,
        ratio=pair.ratio.value,
        low=bounds.low if bounds and sure else None,
        high=bounds.high if bounds and sure else None,
        changed=pair.changed,
        differs=tuple(dict.fromkeys((*pair.differs, *(fact.name for fact in differences)))),
        published=standing_line(key, standing(key, throughput, load_for([key]), unit)),
        failed=limit.fails(pair),
        not_judged=limit.leaves_open(pair),
        differences=differences,
        doubts=(codes(pair.before), codes(pair.after)),
        unreliable=pair.unreliable,
        verdicts=(doubts_verdict(pair.before), doubts_verdict(pair.after)),
        unit=unit,
        costs=(cost_of(pair.before, price), cost_of(pair.after, price)),
        peaks=(peak_shares(pair.before), peak_shares(pair.after)),
    )


def _frameworks_between(sides: Sequence[Side]) -> tuple[Frameworks, ...]:
    """Return the comparisons of frameworks that no run makes alone; of a case in several, the last one's."""
    results = tuple({result.key: result for side in sides for result in side.results}.values())
    marks: dict[Key, Conformance] = {}
    for side in sides:
        marks |= conformance_of(side.folder.facts, side.folder.records())
    standings = standings_of_frameworks(results, load_for(result.key for result in results))
    within = [{result.key.framework for result in side.results} for side in sides]
    return tuple(
        Frameworks(
            Section(_("Frameworks: {case}", case=table.name), list(table_blocks(table))),
            framework_record(table),
        )
        for table in framework_tables(results, standings, marks)
        if not any(own.issuperset(table.frameworks) for own in within)
    )
