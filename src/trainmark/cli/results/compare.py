"""`trainmark compare`: two runs against each other, case by case."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.damage import tell_damage
from trainmark.cli.common.options import json_option, runs_option
from trainmark.cli.common.terminal import terminal_width

if TYPE_CHECKING:
    from trainmark.measure.result.compare import Comparison
    from trainmark.report.render.comparison import ComparisonRow

SAME, FAILED = 0, 1


@click.command("compare")
@click.argument("before")
@click.argument("after")
@runs_option
@click.option(
    "--fail-below", type=click.FloatRange(min=0, min_open=True), help="Exit 1 where after/before is less."
)
@click.option("--format", "kind", type=click.Choice(["text", "md", "json"]), default="text")
@json_option
def compare_command(
    before: str, after: str, runs: Path, fail_below: float | None, kind: str, as_json: bool
) -> int:
    """Compare run AFTER with run BEFORE: the ratio with its interval for each case that both have.

    A case is marked as changed only where the 95 % interval of the ratio leaves 1 out. With --fail-below a
    case fails when its ratio is less and chance does not explain it (or too few trials were run to tell).
    Where the runs hold the same case in different frameworks, those are compared as well.

    \b
    Examples:
      trainmark compare before-upgrade latest
      trainmark compare main my-change --fail-below 0.97 || echo slower
    """
    from trainmark.measure.result.compare import compare, fails_below, unmatched
    from trainmark.report.assemble import frameworks_between, results_of
    from trainmark.report.format import label
    from trainmark.report.render import comparison
    from trainmark.store.run import find_run

    if fail_below is not None and math.isnan(fail_below):
        raise click.UsageError("--fail-below takes a ratio such as 0.97.")
    folders = [find_run(name, runs) for name in (before, after)]
    old, new = (results_of(folder.records()) for folder in folders)
    pairs = compare(old, new)
    frameworks = frameworks_between(*folders)
    if not pairs and (fail_below is not None or not frameworks):
        raise click.ClickException(
            f"{before} and {after} have no case in common; see `trainmark show` of each."
        )
    names = label.distinguishing(result.key for result in (*old, *new))
    only_old, only_new = unmatched(old, new)
    table = comparison.ComparisonTable(
        before=folders[0].path.name,
        after=folders[1].path.name,
        rows=tuple(
            _row(pair, f"{label.series(pair.before.key, names)} {pair.before.key.topology}") for pair in pairs
        ),
        only_before=tuple(f"{label.series(key, names)} {key.topology}" for key in only_old),
        only_after=tuple(f"{label.series(key, names)} {key.topology}" for key in only_new),
        frameworks=frameworks,
    )
    layouts = {
        "text": lambda table: comparison.as_text(table, terminal_width()),
        "md": comparison.as_markdown,
        "json": comparison.as_json,
    }
    click.echo(layouts["json" if as_json else kind](table), nl=False)
    tell_damage(*folders)
    failing = [pair for pair in pairs if fail_below is not None and fails_below(pair, fail_below)]
    for pair in failing:
        case = f"{label.series(pair.before.key, names)} {pair.before.key.topology}"
        click.echo(f"trainmark: {case} is at ×{pair.ratio.value:.3f}, below {fail_below:g}.", err=True)
    return FAILED if failing else SAME


def _row(pair: Comparison, case: str) -> ComparisonRow:
    """Bounds of less than the usual confidence, all that a few trials carry, are left out."""
    from trainmark.measure.statistics.intervals import CONFIDENCE
    from trainmark.published.ledger import best_published, load_of
    from trainmark.report.render.comparison import ComparisonRow

    bounds = pair.ratio.interval
    sure = bounds is not None and bounds.confidence >= CONFIDENCE
    return ComparisonRow(
        case=case,
        before=pair.before.throughput,
        after=pair.after.throughput,
        ratio=pair.ratio.value,
        low=bounds.low if bounds and sure else None,
        high=bounds.high if bounds and sure else None,
        changed=pair.changed,
        differs=pair.differs,
        published=best_published(pair.after.key, pair.after.throughput, load_of({pair.after.key.workload})),
    )
