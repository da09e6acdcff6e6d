"""`trainmark.load`: runs as a data frame, for notebooks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.store.files import StoreError
from trainmark.store.overview import trial_rows
from trainmark.store.run import RunFolder, all_runs, find_run, is_run
from trainmark.store.unpack import unpack

if TYPE_CHECKING:
    import pandas


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
