"""`trainmark history`: every result of a case over all runs, with its changes and what changed with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.complete import complete_run
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, lang_option, runs_option, tell_damage
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.view.catalogue import Lang


@click.command("history")
@click.argument("names", metavar="[RUNS]...", nargs=-1, shell_complete=complete_run)
@runs_option
@click.option(
    "--case",
    "pattern",
    metavar="PATTERN",
    help="Show these cases point by point: a part of the name, or a pattern with * and ?.",
)
@click.option(
    "--by",
    type=click.Choice(["date", "commit", "version", "driver"]),
    default="date",
    show_default=True,
    help="The order of results: when they were measured, or a recorded fact.",
)
@click.option(
    "--since", metavar="WHEN", help="Leave out older results: 2026-11-01, or an age such as 30d, 8w, 1y."
)
@click.option("--format", "kind", type=click.Choice(["text", "html", "md", "json"]), default="text")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@lang_option
@json_option
def history_command(
    names: tuple[str, ...],
    runs: Path,
    pattern: str | None,
    by: str,
    since: str | None,
    kind: str,
    out: Path | None,
    lang: Lang,
    as_json: bool,
) -> int:
    """Show every result of each case over all runs, or over RUNS: names, paths, or folders of runs.

    A case has one line for each machine. Lasting changes of its level are marked, with the facts (framework
    version, driver, kernel, commit, clocks, variables …) that changed at the same place, the best fit first.
    With --case, every result is listed with what differs from the one before.

    \b
    Examples:
      trainmark history
      trainmark history --case 'pytorch*amp*' --since 90d
      trainmark history --by version --case jax
      trainmark history --format html --out history.html
      trainmark history --json | jq '.cases[].changes'
    """
    from trainmark.api.histories import history
    from trainmark.pages.history import as_json as history_json
    from trainmark.pages.history_page import STYLE

    shown = history(*names, runs=runs, case=pattern or "", by=by, since=since)
    tell_damage(*shown.folders)
    kind = "json" if as_json else kind
    width = None if out else terminal_width()
    document = history_json(shown) if kind == "json" else rendered(shown.page(out), kind, lang, width, STYLE)
    deliver(document, kind, out)
    if kind == "text" and out is None and not pattern:
        tell_next("history")
    return 0
