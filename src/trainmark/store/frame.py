"""`trainmark.load`: runs as a data frame, for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.store.files import StoreError
from trainmark.store.overview import trial_row
from trainmark.store.run import RUN, RunFolder, all_runs, find_run

if TYPE_CHECKING:
    import pandas


def load(path: str | Path = "latest", runs: str | Path = "runs") -> pandas.DataFrame:
    """One row a trial, from a run (a path, a name or `latest`) or from a whole folder of runs."""
    try:
        import pandas
    except ImportError as error:
        raise StoreError("a data frame needs pandas; pip install pandas.") from error
    rows: list[dict[str, Any]] = []
    for run in _runs(Path(path), Path(runs)):
        name = run.info.name
        rows += [trial_row(name, record) for record in run.records()]
    return pandas.DataFrame(rows)


def _runs(path: Path, runs: Path) -> list[RunFolder]:
    if path.is_dir() and not (path / RUN).is_file() and (run_folders := all_runs(path)):
        return run_folders
    return [find_run(str(path), runs)]
