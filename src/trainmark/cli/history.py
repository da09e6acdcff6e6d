"""`trainmark history`: every result of a case over all runs, with its changes and what changed with them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_run
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, lang_option, runs_option, tell_damage
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.measure.history.series import RunPoint
    from trainmark.store.run import RunFolder
    from trainmark.view.catalogue import Lang

AGE = re.compile(r"(\d{1,5})([hdwmy])")
SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
GIT_SECONDS = 10
REPORT = "report.html"


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
    from trainmark.measure.history.changes import changes
    from trainmark.measure.history.series import ordered_by
    from trainmark.measure.history.series import since as since_time
    from trainmark.pages.history.model import histories
    from trainmark.pages.history.page import STYLE, history_page
    from trainmark.pages.history.record import as_json as history_json
    from trainmark.store.observations import series_of_runs

    folders = find_folders(names, runs)
    series = series_of_runs(folders)
    tell_damage(*folders)
    if since is not None:
        earliest = parse_since(since, time.time())
        series = tuple(since_time(line, earliest) for line in series)
    ranks = commit_ranks(Path.cwd()) if by == "commit" else {}
    ordered = [ordered_by(line, by, ranks) for line in series]
    shown = histories(
        [line for line, _ in ordered], changes, by, sum(left for _, left in ordered), pattern or ""
    )
    if not shown.cases:
        raise UserError(_nothing(folders, runs, pattern, since, shown.left_out, by))
    kind = "json" if as_json else kind
    page = history_page(shown, bool(pattern), report_links(folders, out))
    width = None if out else terminal_width()
    deliver(history_json(shown) if kind == "json" else rendered(page, kind, lang, width, STYLE), kind, out)
    if kind == "text" and out is None and not pattern:
        tell_next("history")
    return 0


def find_folders(names: Sequence[str], runs: Path) -> list[RunFolder]:
    """Return the runs that are named, by folders that hold several too; without names all of `runs`."""
    from trainmark.store.run import all_runs, find_run, is_run

    if not names:
        return _measured(all_runs(runs))
    folders: dict[Path, RunFolder] = {}
    for name in names:
        inner = _measured(all_runs(Path(name))) if not is_run(Path(name)) else []
        for run in inner or [find_run(name, runs)]:
            folders[run.path.resolve()] = run
    return list(folders.values())


def _measured(folders: Iterable[RunFolder]) -> list[RunFolder]:
    """Leave out the trials that `explain` took for itself; whoever names one gets it."""
    return [run for run in folders if not run.info.of_explain]


def parse_since(text: str, now: float) -> float:
    """Return the time of a date, or of an age counted back from `now`."""
    if match := AGE.fullmatch(text.strip()):
        return now - int(match[1]) * SECONDS[match[2]]
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UserError(
            f"--since {text} is no date; write 2026-11-01, 2026-11-01T06:00, or an age such as 30d."
        ) from error
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def commit_ranks(folder: Path) -> Mapping[str, int]:
    """Return the place of every commit in the history of the repository here; nothing where there is none."""
    command = ["git", "-C", str(folder), "rev-list", "--topo-order", "--reverse", "--all"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {commit: place for place, commit in enumerate(listed.stdout.split())}


def _nothing(
    folders: Sequence[RunFolder], runs: Path, pattern: str | None, since: str | None, left_out: int, by: str
) -> str:
    if not folders:
        return f"there are no runs in {runs}; make one with `trainmark run quick`."
    if left_out:
        return f"no result has a recorded {by}; leave out --by."
    if pattern:
        return f"no case matches --case {pattern}; `trainmark history` lists the cases."
    return f"no result is from {since} or later." if since else "no trial of these runs has a figure."


def report_links(folders: Sequence[RunFolder], out: Path | None) -> Callable[[RunPoint], str]:
    """Return where the report of a result lies: beside a page that is written, else by its full address."""
    from trainmark.store.observations import run_names

    reports = zip(run_names(folders), (run.path.resolve() / REPORT for run in folders), strict=True)
    written = {name: path for name, path in reports if path.is_file()}

    def link(point: RunPoint) -> str:
        path = written.get(point.run)
        if path is None:
            return ""
        return path.as_uri() if out is None else quote(os.path.relpath(path, out.resolve().parent))

    return link
