"""`trainmark compare`: runs against a baseline, case by case."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.text import one_line
from trainmark.cli.complete import complete_run
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, price_option, runs_option, tell_damage
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.api.comparing import Comparison, FailLimit
    from trainmark.measure.cost import Price

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
    from trainmark.api.comparing import FailLimit, compare
    from trainmark.api.runs import open
    from trainmark.pages.comparison import as_json as json_of

    if fail_below is not None and math.isnan(fail_below):
        raise click.UsageError("--fail-below takes a ratio such as 0.97.")
    if fail_unsure and fail_below is None:
        raise click.UsageError("--fail-unsure needs --fail-below.")
    opened = [open(name, runs) for name in (before, *after)]
    limit = FailLimit(fail_below, fail_unsure)
    compared = compare(*opened, price=price, limit=limit)
    kind = "json" if as_json else kind
    width = None if out else terminal_width()
    document = json_of(compared) if kind == "json" else rendered(compared.page(), kind, width=width)
    deliver(document, kind, out)
    tell_damage(*(run.folder for run in opened))
    if kind == "text" and out is None and len(after) == 1:
        tell_next("compare", before=before, after=after[0])
    return _tell_failures(compared, limit)


def _tell_failures(comparisons: Comparison, limit: FailLimit) -> int:
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
