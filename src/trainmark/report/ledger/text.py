"""The ledger for a terminal: one line a row, columns aligned, what is wrong below."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.base.text import one_line
from trainmark.logs.ledger.entry import LedgerEntry
from trainmark.logs.ledger.standing import SHORT_UNITS
from trainmark.report.format.table import Table

HEADER = (
    "source",
    "date",
    "workload",
    "framework",
    "version",
    "device",
    "precision",
    "batch",
    "topology",
    "throughput",
    "",
    "speedup",
    "memory (MB)",
    "time to train (s)",
    "top-1",
    "config",
    "errata",
)
RIGHT = frozenset({7, 9, 11, 12, 13, 14})


def lines(entries: Sequence[LedgerEntry], width: int | None = None) -> list[str]:
    """The table, then each erratum that it refers to."""
    errata = list(dict.fromkeys((entry.source, text) for entry in entries for text in entry.errata))
    rows = [_cells(entry, errata) for entry in entries]
    table = Table(HEADER, rows, RIGHT).lines(width)
    notes = [f"[{index}] {source}: {one_line(text)}" for index, (source, text) in enumerate(errata, 1)]
    return [*table, "", *notes] if notes else table


def _cells(entry: LedgerEntry, errata: list[tuple[str, str]]) -> list[object]:
    row = entry.row
    compiler = None if row.compiler == "none" else row.compiler
    length = f"length {row.sequence_length}" if row.sequence_length else None
    padding = "padding skipped" if row.padding == "skipped" else None
    accumulated = f"×{row.accumulate} accumulated" if (row.accumulate or 1) > 1 else None
    config = (length, padding, accumulated, row.layout, compiler, row.data, row.note)
    return [
        entry.source,
        entry.date,
        row.workload,
        row.framework,
        row.framework_version,
        row.device,
        "/".join(filter(None, (row.precision, row.loss_scale))),
        row.batch_per_device,
        row.topology,
        _number(row.throughput),
        SHORT_UNITS[row.unit] if row.throughput else None,
        row.speedup,
        _number(row.memory_mb),
        _number(row.time_to_train_s),
        row.top1,
        ", ".join(filter(None, config)),
        " ".join(f"[{errata.index((entry.source, text)) + 1}]" for text in entry.errata),
    ]


def _number(value: float | None) -> str | None:
    """All the digits that the source printed."""
    return None if value is None else f"{value:,}".removesuffix(".0")
