"""What published reports say fits a card of some size."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmark.measure.key import Axes
from trainmark.published.ledger import load_of
from trainmark.published.ledger.names import SIZE, axis_of, published_names
from trainmark.workloads.declaration import Workload

CARD = re.compile(r"\b(\d+) ?GB\b", re.IGNORECASE)


@dataclass(frozen=True)
class Published:
    """The largest batch that a source has run; `largest` where it says that no larger one fits."""

    title: str
    page: str
    framework: str
    device: str
    precision: str
    batch: int
    largest: bool
    memory_mb: float | None


def published(
    workload: Workload, framework: str, precision: str, axes: Axes, gigabytes: int
) -> list[Published]:
    """Of the same framework, and whoever else says what is the most, or how much memory it took."""
    defaults = workload.defaults
    best: dict[tuple[str, str], Published] = {}
    for entry in load_of(published_names(workload.name, dict(axes).get(SIZE))):
        row = entry.row
        card = CARD.search(row.device or "")
        if row.precision != precision:
            continue
        # A table that does not say an axis has it at its default; accumulation does not change what fits.
        compared = ((name, value) for name, value in axes if name not in (SIZE, "accumulate"))
        if any((axis_of(row, name) or defaults[name]) != value for name, value in compared):
            continue
        if not card or int(card[1]) != gigabytes or row.batch_per_device is None:
            continue
        if row.framework != framework and row.max_batch is None and row.memory_mb is None:
            continue
        candidate = Published(
            title=entry.origin.title,
            page=entry.origin.page,
            framework=row.framework,
            device=str(row.device),
            precision=precision,
            batch=row.batch_per_device,
            largest=row.max_batch == row.batch_per_device,
            memory_mb=row.memory_mb,
        )
        source = (entry.source, row.framework)
        if source not in best or _rank(best[source]) < _rank(candidate):
            best[source] = candidate
    return sorted(best.values(), key=lambda each: (each.framework != framework, -each.largest, each.title))


def _rank(one: Published) -> tuple[int, float]:
    return one.batch, one.memory_mb or 0.0
