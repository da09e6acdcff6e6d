"""Every trial as one row of a spreadsheet, the failed ones too."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from trainmark.pages.export.source import ExportedRun, Skipped
from trainmark.pages.run.csv_table import cell
from trainmark.store.overview import trial_row


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    rows = [trial_row(source.info.name, record) for record in source.records]
    with (folder / "trials.csv").open("w", encoding="utf-8", newline="") as file:
        # Workloads have axes and metrics of their own.
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: cell(value) for name, value in row.items()})
    return ()
