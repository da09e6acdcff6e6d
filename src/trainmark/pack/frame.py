"""`trainmark.load`: runs as a data frame, from folders or from a packed file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trainmark.pack.unpack import unpack
from trainmark.store import frame

if TYPE_CHECKING:
    import pandas


def load(path: str | Path = "latest", runs: str | Path = "runs") -> pandas.DataFrame:
    """One row a trial, from a run (a path, a name, `latest`), a folder of runs, or a packed file.

    Of a packed file the digests are checked; `trainmark verify` also recomputes its figures.
    """
    if not Path(path).is_file():
        return frame.load(path, runs)
    with tempfile.TemporaryDirectory(prefix="trainmark-load-") as folder:
        return frame.load(unpack(Path(path), Path(folder) / "run").path)
