"""From a run to a folder in one of the forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.measure.comparison import ResultComparison, cannot_be_judged, compare_results, fails_below
from trainmark.measure.key import Key
from trainmark.report.assemble import results_of
from trainmark.report.export import airank, csv_table, dllogger, dlperf, junit, mlflow, mllog, tensorboard
from trainmark.report.export.place import MARKER, ExportError, new_folder
from trainmark.report.export.source import ExportedRun, Skipped, load_run
from trainmark.store.run import RunFolder

Writer = Callable[[ExportedRun, Path], Sequence[Skipped]]
# A writer fills an empty folder and says which trials it had to leave out.
WRITERS: dict[str, Writer] = {
    "dllogger": dllogger.write,
    "mllog": mllog.write,
    "airank": airank.write,
    "dlperf": dlperf.write,
    "csv": csv_table.write,
    "tensorboard": tensorboard.write,
    "mlflow": mlflow.write,
    "junit": junit.write,
}


@dataclass(frozen=True)
class Exported:
    """What was written, relative to `out`, and what was left out with the reason."""

    out: Path
    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class Baseline:
    """The run to compare with, and the ratio below which a surely slower case is a regression."""

    run: RunFolder
    fail_below: float = 1.0


def export(
    run: RunFolder,
    target: str,
    out: Path,
    submitter: str,
    force: bool = False,
    baseline: Baseline | None = None,
) -> Exported:
    """Writes the whole folder or nothing; ExportError where there is nothing to write or no place for it."""
    source = load_run(run, submitter)
    if baseline is not None:
        source = replace(source, slower=slower(run, baseline))
    with new_folder(out, force) as folder:
        skipped = WRITERS[target](source, folder)
        files = tuple(sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))
        if not files or len(skipped) == len(source.records):
            reasons = f": {skipped[0][0]} {skipped[0][1]}" if skipped else ""
            raise ExportError(f"run '{source.info.name}' has no trial to export{reasons}.")
        marker = {"run": source.info.name, "to": target, "trainmark": source.info.version}
        (folder / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")
    return Exported(out, files, tuple(skipped))


def slower(run: RunFolder, baseline: Baseline) -> dict[Key, ResultComparison]:
    """The cases of a run that `compare --fail-below` would fail or cannot judge, by their key."""
    pairs = compare_results(results_of(baseline.run.records()), results_of(run.records()))
    below = baseline.fail_below
    return {
        pair.after.key: pair for pair in pairs if fails_below(pair, below) or cannot_be_judged(pair, below)
    }
