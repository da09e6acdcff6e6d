"""From a run to a folder in one of the forms."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.measure.comparison import ResultComparison, cannot_be_judged, compare_results, fails_below
from trainmark.measure.key import Key
from trainmark.pages.export import airank, csv_table, dllogger, dlperf, junit, mlflow, mllog, tensorboard
from trainmark.pages.export.source import ExportedRun, Skipped, load_run
from trainmark.store.report import results_of
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


# In every exported folder: by it `--force` knows that nothing of anybody else's is thrown away.
MARKER = ".trainmark-export.json"


class ExportError(UserError):
    """One sentence: what cannot be exported or where it cannot go, and what to do."""


@contextmanager
def new_folder(out: Path, force: bool) -> Iterator[Path]:
    """An empty folder beside `out` to write into; it becomes `out` in one rename if all went well."""
    out = out.resolve()
    _require_free(out, force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.part-"))
    except OSError as error:
        raise ExportError(
            f"{out} cannot be written: {error.strerror}; choose another folder with --out."
        ) from error
    try:
        # mkdtemp makes a folder for its owner alone; an export is meant to be handed on.
        part.chmod(0o755)
        yield part
        _swap(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _require_free(out: Path, force: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise ExportError(f"{out} is a file; choose a folder with --out.")
    if not any(out.iterdir()):
        return
    if not force:
        raise ExportError(f"{out} is not empty; choose another --out, or replace it with --force.")
    if not (out / MARKER).is_file():
        raise ExportError(
            f"{out} holds something that `trainmark export` did not write; choose another --out."
        )


def _swap(part: Path, out: Path) -> None:
    if not out.exists() or not any(out.iterdir()):
        part.rename(out)
        return
    old = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.old-"))
    out.rename(old)
    part.rename(out)
    shutil.rmtree(old)
