"""Runs and trials as plain rows, for lists, scripts and, by `trainmark.load`, notebooks."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.measure.figure import Finish, TrialFigure
from trainmark.store.files import StoreError, read_object
from trainmark.store.manifest import figure_numbers
from trainmark.store.run import RunFolder, all_runs, find_run, is_run
from trainmark.store.trial import ENVIRONMENT, TrialRecord
from trainmark.store.unpack import unpack
from trainmark.workloads import registry

if TYPE_CHECKING:
    import pandas


def overview(runs: Path) -> list[tuple[dict[str, Any], Sequence[TrialRecord]]]:
    """Each run as a row and its trials, oldest first; one with a file that cannot be read is `damaged`."""
    listed = [(run, run.records()) for run in all_runs(runs)]
    return [(run_row(run, records), records) for run, records in listed]


def run_row(run: RunFolder, records: Sequence[TrialRecord]) -> dict[str, Any]:
    info = run.info
    outcomes = Counter(record.outcome for record in records)
    return {
        "name": info.name,
        "path": str(run.path),
        "suite": info.suite,
        "created": info.created,
        "version": info.version,
        "status": _status(run, outcomes),
        "ok": outcomes["ok"],
        "failed": sum(outcomes.values()) - outcomes["ok"],
        "least": info.least,
        "most": info.most,
        "outcomes": dict(outcomes),
        "skipped": len(info.skipped),
    }


def _status(run: RunFolder, outcomes: Counter[str]) -> str:
    """`failed` is a run that came to its end without one good trial; runs of 0.1.0 do not note their end."""
    if run.damaged:
        return "damaged"
    if not run.has_ended and sum(outcomes.values()) < run.info.least:
        return "partial"
    return "finished" if outcomes["ok"] else "failed"


FINISH = (
    "reached",
    "time2train",
    "airank_seconds",
    "epochs_to_target",
    "train_rate",
    "whole_rate",
)


def _finish_row(finish: Finish | None) -> dict[str, Any]:
    """With the best of each metric that some workload declares, or this training itself."""
    scores = dict(finish.best) if finish else {}
    best = {f"best_{name}": scores.get(name) for name in dict.fromkeys((*registry.metrics(), *scores))}
    return {**{name: getattr(finish, name, None) for name in FINISH}, **best}


def trial_rows(run: RunFolder, records: Sequence[TrialRecord]) -> list[dict[str, Any]]:
    """One row a trial, with when its run was created and the commit of the folder that it was started in."""
    info = run.info
    return [
        {**trial_row(info.name, record), "created": info.created, "commit": _commit(run, record)}
        for record in records
    ]


def _commit(run: RunFolder, record: TrialRecord) -> str | None:
    try:
        environment = read_object(run.trial(record.spec.case, record.spec.repeat).done / ENVIRONMENT)
    except (OSError, StoreError):
        return None
    git = environment.get("git")
    commit = git.get("commit") if isinstance(git, dict) else None
    return commit if isinstance(commit, str) else None


def _conventions(figure: TrialFigure | None) -> str | None:
    """`nanoGPT=0.583 llm.c=0.548`: the MFU by other codes' conventions."""
    conventions = figure.conventions if figure else ()
    return (
        " ".join(f"{convention.name}={convention.utilisation.value:.4g}" for convention in conventions)
        or None
    )


def trial_row(run: str, record: TrialRecord) -> dict[str, Any]:
    """One trial, flat."""
    figure = record.figure
    shares = figure.breakdown.shares if figure and figure.breakdown else None
    return {
        "run": run,
        "case": record.spec.case,
        "repeat": record.spec.repeat,
        "outcome": record.outcome,
        "detail": record.detail,
        "node": record.node,
        **record.key.values(),
        **figure_numbers(figure),
        "unit": f"{figure.unit}/s" if figure else None,
        "steps": figure.window.steps if figure else None,
        "warmup_steps": figure.window.first if figure else None,
        "verdict": figure.window.verdict.value if figure else None,
        "step_seconds": figure.step_times.p50 if figure else None,
        "first_step_seconds": figure.first_step_seconds if figure else None,
        "memory_bytes": figure.memory_bytes if figure else None,
        "host_memory_bytes": figure.host_memory_bytes if figure else None,
        "data_wait_share": figure.data_wait_share if figure else None,
        "communication_share": shares.communication if shares else None,
        "samples_per_joule": figure.samples_per_joule if figure else None,
        "joules_per_sample": figure.joules_per_sample if figure else None,
        "memory_share": figure.memory_share if figure else None,
        "mfu": figure.utilisation.value if figure and figure.utilisation else None,
        "hfu": figure.hardware_utilisation.value if figure and figure.hardware_utilisation else None,
        "conventions": _conventions(figure),
        **_finish_row(figure.finish if figure else None),
        "doubts": ",".join(doubt.code.value for doubt in figure.doubts) if figure else "",
        "retries": len(record.retries),
        "started": record.started,
        "seconds": record.seconds,
        "environment": record.environment,
    }


def load(path: str | Path = "latest", runs: str | Path = "runs") -> pandas.DataFrame:
    """Return one row a trial: of a run (path, name, `latest`), a folder of runs, a packed file, or a server.

    `https://HOST` has the trials of all runs there, `https://HOST/runs/UUID` those of one; a token comes from
    `$TRAINMARK_TOKEN` or the file `token` in Trainmark's home. Of a packed file the digests are checked;
    `trainmark verify` also recomputes its figures.
    """
    try:
        import pandas
    except ImportError as error:
        raise StoreError("a data frame needs pandas; pip install pandas.") from error
    if isinstance(path, str) and path.startswith(("https://", "http://")):
        return pandas.DataFrame(_remote_rows(path))
    if not Path(path).is_file():
        return _frame(_runs(Path(path), Path(runs)))
    with tempfile.TemporaryDirectory(prefix="trainmark-load-") as folder:
        return _frame([unpack(Path(path), Path(folder) / "run")])


def _frame(runs: list[RunFolder]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame([row for run in runs for row in trial_rows(run, run.records())])


def _remote_rows(url: str) -> list[dict[str, Any]]:
    from trainmark.store.remote import Remote, find_token, run_of

    server, run = run_of(url)
    return Remote(server, find_token()).trials(run)


def _runs(path: Path, runs: Path) -> list[RunFolder]:
    if path.is_dir() and not is_run(path) and (run_folders := all_runs(path)):
        return run_folders
    return [find_run(str(path), runs)]
