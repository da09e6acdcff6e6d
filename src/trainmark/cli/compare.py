"""`trainmark compare`: runs against a baseline, case by case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.text import one_line
from trainmark.cli.complete import complete_run
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, price_option, runs_option, tell_damage
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.measure.comparison import ResultComparison
    from trainmark.measure.cost import Price
    from trainmark.measure.figure import Result
    from trainmark.measure.history.facts import FactChange
    from trainmark.measure.history.series import RunPoint
    from trainmark.measure.key import Key
    from trainmark.pages.comparison import ComparisonRow, Comparisons, ComparisonTable, Frameworks
    from trainmark.store.report import Conformance
    from trainmark.store.run import RunFolder

SAME, FAILED, NOT_JUDGED = 0, 1, 3


@click.command("compare")
@click.argument("before", shell_complete=complete_run)
@click.argument("after", nargs=-1, required=True, shell_complete=complete_run)
@runs_option
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    help="Exit 1 where after/before is less, and surely below 1.",
)
@click.option(
    "--fail-unsure", is_flag=True,
    help="With --fail-below, exit 1 also where too few trials, or doubts, leave it open.",
)  # fmt: skip
@price_option
@click.option("--format", "kind", type=click.Choice(["text", "md", "json", "html"]), default="text")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@json_option
def compare_command(
    before: str,
    after: tuple[str, ...],
    runs: Path,
    fail_below: float | None,
    fail_unsure: bool,
    price: Price | None,
    kind: str,
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare each run AFTER with run BEFORE: the ratio with its interval for each case that both have.

    A case is marked as changed only where the 95 % interval of the ratio leaves 1 out. What else differs
    (command, commit, versions, variables, threads) is named. Where the runs hold the same case in different
    frameworks, those are compared as well.

    With --fail-below the exit code is 1 where a case marked as slower has a smaller ratio, and 3 where a side
    is not to be relied on (as where the host was busy), so that it cannot be judged. A case that too few
    trials or such doubts leave open fails with --fail-unsure.

    \b
    Examples:
      trainmark compare before-upgrade latest
      trainmark compare baseline amp fused --format html --out compare.html
      trainmark compare main my-change --fail-below 0.97 || echo slower
    """
    from trainmark.pages import label
    from trainmark.pages.comparison import Comparisons
    from trainmark.pages.comparison import as_json as json_of
    from trainmark.pages.comparison_page import comparison_page
    from trainmark.store.report import results_of
    from trainmark.store.run import find_run

    if fail_below is not None and math.isnan(fail_below):
        raise click.UsageError("--fail-below takes a ratio such as 0.97.")
    if fail_unsure and fail_below is None:
        raise click.UsageError("--fail-unsure needs --fail-below.")
    folders = [find_run(name, runs) for name in (before, *after)]
    sides = [results_of(folder.records()) for folder in folders]
    names = label.distinguishing(result.key for side in sides for result in side)
    limit = Limit(fail_below, fail_unsure)
    tables = tuple(
        _table(Side(folders[0], sides[0]), Side(folder, side), names, limit, price)
        for folder, side in zip(folders[1:], sides[1:], strict=True)
    )
    frameworks = _frameworks_between(folders, sides)
    for name, table in zip(after, tables, strict=True):
        if not table.rows and (fail_below is not None or not frameworks):
            raise click.ClickException(
                f"{before} and {name} have no case in common; see `trainmark show` of each."
            )
    comparisons = Comparisons(tables, frameworks, str(price) if price else "")
    kind = "json" if as_json else kind
    width = None if out else terminal_width()
    document = (
        json_of(comparisons) if kind == "json" else rendered(comparison_page(comparisons), kind, width=width)
    )
    deliver(document, kind, out)
    tell_damage(*folders)
    if kind == "text" and out is None and len(after) == 1:
        tell_next("compare", before=before, after=after[0])
    return _tell_failures(comparisons, limit)


def _frameworks_between(
    folders: Sequence[RunFolder], sides: Sequence[Sequence[Result]]
) -> tuple[Frameworks, ...]:
    """Return the comparisons of frameworks that no run makes alone; of a case in several, the last one's."""
    from trainmark.logs.ledger import load_for
    from trainmark.pages.comparison import Frameworks
    from trainmark.pages.run.frameworks import framework_tables, table_blocks
    from trainmark.pages.run.record import framework_record
    from trainmark.store.report import conformance_of, standings_of_frameworks
    from trainmark.view.blocks import Section
    from trainmark.view.message import _

    results = tuple({result.key: result for side in sides for result in side}.values())
    marks: dict[Key, Conformance] = {}
    for folder in folders:
        marks |= conformance_of(folder.facts, folder.records())
    standings = standings_of_frameworks(results, load_for(result.key for result in results))
    within = [{result.key.framework for result in side} for side in sides]
    return tuple(
        Frameworks(
            Section(_("Frameworks: {case}", case=table.name), list(table_blocks(table))),
            framework_record(table),
        )
        for table in framework_tables(results, standings, marks)
        if not any(own.issuperset(table.frameworks) for own in within)
    )


class Limit:
    """The ratio below which a comparison fails, and whether an undecided row fails it too."""

    def __init__(self, below: float | None, unsure: bool) -> None:
        self.below, self.unsure = below, unsure

    def fails(self, pair: ResultComparison) -> bool:
        from trainmark.measure.comparison import fails_below

        return self.below is not None and fails_below(pair, self.below, self.unsure)

    def leaves_open(self, pair: ResultComparison) -> bool:
        from trainmark.measure.comparison import cannot_be_judged

        return self.below is not None and not self.unsure and cannot_be_judged(pair, self.below)


class Side:
    """A run with its results, and what was recorded of each."""

    def __init__(self, run: RunFolder, results: Sequence[Result]) -> None:
        from trainmark.store.observations import points_of

        self.name, self.results, self.points = run.path.name, results, points_of(run)


def _table(
    before: Side, after: Side, names: Sequence[str], limit: Limit, price: Price | None
) -> ComparisonTable:
    from trainmark.measure.comparison import compare_results, unmatched_keys
    from trainmark.pages import label
    from trainmark.pages.comparison import ComparisonTable

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
    from trainmark.measure.history.facts import FactChange, settings_that_differ

    settings = settings_that_differ(before, after)
    known = {fact.name for fact in settings}
    keys = ((name, pair.before.key.value(name), pair.after.key.value(name)) for name in pair.differs)
    own = (FactChange(name, _text(old), _text(new), 1.0) for name, old, new in keys if name not in known)
    return (*own, *settings)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _row(
    pair: ResultComparison, case: str, differences: tuple[FactChange, ...], limit: Limit, price: Price | None
) -> ComparisonRow:
    """Bounds of less than the usual confidence, all that a few trials carry, are left out."""
    from trainmark.logs.ledger import best_published, load_for
    from trainmark.measure.cost import cost_of
    from trainmark.measure.statistics import CONFIDENCE
    from trainmark.pages.comparison import ComparisonRow, peak_shares
    from trainmark.pages.label import rate_unit
    from trainmark.pages.run.answer import doubts_verdict as verdict

    def codes(result: Result) -> tuple[str, ...]:
        return tuple(doubt.code.value for doubt in result.doubts)

    bounds = pair.ratio.interval
    sure = bounds is not None and bounds.confidence >= CONFIDENCE
    key, throughput, unit = pair.after.key, pair.after.throughput, rate_unit(pair.after.unit)
    return ComparisonRow(
        case=case,
        before=pair.before.throughput,
        after=pair.after.throughput,
        ratio=pair.ratio.value,
        low=bounds.low if bounds and sure else None,
        high=bounds.high if bounds and sure else None,
        changed=pair.changed,
        differs=tuple(dict.fromkeys((*pair.differs, *(fact.name for fact in differences)))),
        published=best_published(key, throughput, load_for([key]), unit),
        failed=limit.fails(pair),
        not_judged=limit.leaves_open(pair),
        differences=differences,
        doubts=(codes(pair.before), codes(pair.after)),
        unreliable=pair.unreliable,
        verdicts=(verdict(pair.before), verdict(pair.after)),
        unit=unit,
        costs=(cost_of(pair.before, price), cost_of(pair.after, price)),
        peaks=(peak_shares(pair.before), peak_shares(pair.after)),
    )


def _tell_failures(comparisons: Comparisons, limit: Limit) -> int:
    """Name each row that fails, and each that would but for few trials or doubts; return the exit code."""
    several = len(comparisons.tables) > 1
    code = SAME
    for table in comparisons.tables:
        for row in table.rows:
            if limit.below is None or row.ratio >= limit.below:
                continue
            place = f"{row.case} of {table.after}" if several else row.case
            sentence = f"trainmark: {place} is at ×{row.ratio:.3f}, below {limit.below:g}"
            if row.failed:
                code = FAILED
                click.echo(f"{sentence}.", err=True)
            elif row.not_judged:
                code = code or NOT_JUDGED
                verdicts = " ".join(dict.fromkeys(filter(None, row.verdicts)))
                click.echo(one_line(f"{sentence}, which cannot be judged. {verdicts}"), err=True)
            elif row.mark == "?":
                click.echo(f"{sentence}, but too few trials were run to say; add trials.", err=True)
    return code
