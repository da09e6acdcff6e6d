"""Every result of a case over many runs, with its changes and what changed with them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trainmark.api.runs import Run
from trainmark.api.shown import Shown, Tabular
from trainmark.base.errors import UserError
from trainmark.measure.history.changes import changes
from trainmark.measure.history.series import DATE, RunPoint, ordered_by
from trainmark.measure.history.series import since as since_time
from trainmark.pages.history import Histories, histories, tree
from trainmark.pages.history_page import history_page
from trainmark.store.observations import run_names, series_of_runs
from trainmark.store.run import RunFolder, all_runs, find_run, is_run
from trainmark.view.blocks import Page

AGE = re.compile(r"(\d{1,5})([hdwmy])")
SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
GIT_SECONDS = 10
REPORT = "report.html"


@dataclass(frozen=True)
class RunHistory(Histories, Shown, Tabular):
    """The cases of these runs over time."""

    folders: tuple[RunFolder, ...] = ()
    detailed: bool = False

    def page(self, out: Path | None = None) -> Page:
        """Return the page; its links to reports are relative to `out`, where it is written."""
        return history_page(self, self.detailed, report_links(self.folders, out))

    def to_dict(self) -> dict[str, Any]:
        return tree(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return each result of each case."""
        return [
            {"case": case["case"], "machine": case["machine"], "unit": case["unit"], **point}
            for case in self.to_dict()["cases"]
            for point in case["points"]
        ]


def history(
    *names: str | Path | Run,
    runs: str | Path = "runs",
    case: str = "",
    by: str = DATE,
    since: str | None = None,
) -> RunHistory:
    """Return every result of each case over all runs below `runs`, or over these: runs, or folders of runs.

    `case` is a part of a name, or a pattern with * and ?; `by` is date, commit, version or driver; `since` is
    a date, or an age such as 30d.
    """
    folders = find_folders([name.path if isinstance(name, Run) else name for name in names], Path(runs))
    series = series_of_runs(folders)
    if since is not None:
        earliest = parse_since(since, time.time())
        series = tuple(since_time(line, earliest) for line in series)
    ranks = commit_ranks(Path.cwd()) if by == "commit" else {}
    ordered = [ordered_by(line, by, ranks) for line in series]
    left_out = sum(left for _line, left in ordered)
    shown = histories([line for line, _left in ordered], changes, by, left_out, case)
    if not shown.cases:
        raise UserError(_nothing(folders, Path(runs), case, since, left_out, by))
    return RunHistory(shown.cases, by, left_out, tuple(folders), bool(case))


def find_folders(names: Sequence[str | Path], runs: Path) -> list[RunFolder]:
    """Return the runs that are named, by folders that hold several too; without names all of `runs`."""
    if not names:
        return _measured(all_runs(runs))
    folders: dict[Path, RunFolder] = {}
    for name in names:
        inner = _measured(all_runs(Path(name))) if not is_run(Path(name)) else []
        for run in inner or [find_run(str(name), runs)]:
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
    reports = zip(run_names(folders), (run.path.resolve() / REPORT for run in folders), strict=True)
    written = {name: path for name, path in reports if path.is_file()}

    def link(point: RunPoint) -> str:
        path = written.get(point.run)
        if path is None:
            return ""
        return path.as_uri() if out is None else quote(os.path.relpath(path, out.resolve().parent))

    return link
