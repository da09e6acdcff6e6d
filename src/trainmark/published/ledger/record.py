"""An entry as the flat record that scripts read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trainmark.published.ledger.entry import Entry

# Scripts rely on these names; the others follow them.
FIRST = (
    "source",
    "date",
    "framework",
    "framework_version",
    "workload",
    "device",
    "precision",
    "loss_scale",
    "batch_per_device",
    "nodes",
    "devices_per_node",
    "throughput",
    "speedup",
    "memory_mb",
    "time_to_train_s",
    "top1",
)


def record(entry: Entry) -> dict[str, Any]:
    """Every field by its name; what the source does not say is None."""
    fields: dict[str, Any] = {
        "source": entry.source,
        **asdict(entry.row),
        "date": entry.date,
        "runs": list(entry.row.runs) or None,
        "title": entry.origin.title,
        "page": entry.origin.page,
        "commit": entry.origin.commit,
        "confidence": entry.origin.confidence,
        "kind": entry.origin.kind,
        "errata": list(entry.errata),
    }
    names = (*FIRST, *(name for name in fields if name not in FIRST))
    return {name: fields[name] for name in names}
