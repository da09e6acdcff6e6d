"""Every trial as one row of a spreadsheet, the failed ones too."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from trainmark.export.source import Skipped, Source
from trainmark.report.csv_report import cell
from trainmark.store.overview import trial_row


def write(source: Source, folder: Path) -> Sequence[Skipped]:
    rows = [trial_row(source.info.name, record) for record in source.records]
    with (folder / "trials.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: cell(value) for name, value in row.items()})
    return ()
