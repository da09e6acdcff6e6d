"""The rows of the ledger's page as data, from which its script makes those that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmark.base.text import one_line
from trainmark.logs.ledger.entry import LedgerEntry, LedgerRow
from trainmark.report.format import number

Cell = str | tuple[str, str]

COLUMNS = (
    "source",
    "date",
    "workload",
    "framework",
    "device",
    "precision",
    "batch",
    "topology",
    "throughput",
    "time to train (s)",
    "remarks",
)
NUMERIC = (6, 8, 9)


def payload(entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    """Every distinct cell of a column once; a row is their numbers, and those of its errata as a list.

    That is a third of the size that the cells have when each row holds its own.
    """
    errata = list(dict.fromkeys(text for entry in entries for text in entry.errata))
    place = {text: index for index, text in enumerate(errata)}
    columns: list[dict[Cell, int]] = [{} for _ in COLUMNS]
    rows: list[list[Any]] = []
    for entry in entries:
        cells = zip(columns, _cells(entry), strict=True)
        numbers: list[Any] = [column.setdefault(cell, len(column)) for column, cell in cells]
        rows.append([*numbers, [place[text] for text in entry.errata]] if entry.errata else numbers)
    return {
        "columns": [list(column) for column in columns],
        "errata": [one_line(text) for text in errata],
        "rows": rows,
    }


def _cells(entry: LedgerEntry) -> list[Cell]:
    """A cell is a text, or a text with a smaller one behind it."""
    row = entry.row
    throughput = number.throughput(row.throughput) if row.throughput else ""
    return [
        one_line(entry.source),
        entry.date or "",
        _text(row.workload),
        (_text(row.framework), _text(row.framework_version)),
        _text(row.device),
        (_text(row.precision), _text(row.loss_scale)),
        _text(row.batch_per_device),
        row.topology or (f"{row.devices} devices" if row.devices else ""),
        (throughput, row.unit if throughput else ""),
        _text(row.time_to_train_s),
        (_text(row.note), _remarks(row)),
    ]


def _remarks(row: LedgerRow) -> str:
    """What has no column of its own."""
    parts = (
        row.submitter,
        row.system,
        f"{row.sequence_length} tokens" if row.sequence_length else None,
        "padding skipped" if row.padding == "skipped" else None,
        f"{row.accumulate} micro-batches" if (row.accumulate or 1) > 1 else None,
        row.optimizer,
        row.sharding,
        row.layout,
        None if row.compiler == "none" else row.compiler,
        f"speed-up {row.speedup}" if row.speedup else None,
        f"MFU {row.mfu} %" if row.mfu else None,
        f"{row.tflops_per_device} TFLOP/s a device" if row.tflops_per_device else None,
        f"top-1 {row.top1}" if row.top1 else None,
    )
    return one_line(", ".join(filter(None, parts)))


def _text(value: object) -> str:
    return "" if value is None else one_line(str(value))
