"""A standing as the one line that stands beside a result."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.key import Key
from trainmark.published.ledger.device import family
from trainmark.published.ledger.entry import Entry
from trainmark.published.ledger.standing import Standing, standing

SHORT_UNITS = {"images/s": "img/s", "sequences/s": "seq/s", "samples/s": "samples/s", "tokens/s": "tok/s"}
NAMES = {
    "framework_version": "version",
    "batch_per_device": "batch",
    "loss_scale": "loss scale",
}


def best_published(key: Key, throughput: float, entries: Sequence[Entry]) -> str:
    """`best published: 4,868.3 img/s (milabench-h200); this is 125 % of it; theirs: batch 256 …`."""
    comparison = standing(key, throughput, entries)
    return in_words(comparison) if comparison else f"best published: nothing comparable ({_why(key)})"


def in_words(comparison: Standing) -> str:
    figure = _figure(comparison.best, comparison.per_device)
    parts = [f"best published: {figure}; this is {100 * comparison.ratio:.0f} % of it"]
    if comparison.differences:
        differences = (
            f"{_name(each.field)} {each.theirs} (here {each.ours})" for each in comparison.differences
        )
        parts.append(f"theirs: {', '.join(differences)}")
    if comparison.unsaid:
        parts.append(f"not said on one side: {', '.join(map(_name, comparison.unsaid))}")
    if comparison.best.errata:
        parts.append("the source has errata")
    if comparison.ceiling:
        parts.append(f"most from one device: {_figure(comparison.ceiling, per_device=True)}")
    return "; ".join(parts)


def _figure(entry: Entry, per_device: bool) -> str:
    row = entry.row
    value = (row.per_device if per_device else row.throughput) or 0.0
    unit = SHORT_UNITS[row.unit]
    of = f" a device of {row.topology or row.devices}" if per_device else ""
    return f"{value:,.1f} {unit}{of} ({entry.source}, {row.framework})"


def _name(field: str) -> str:
    return NAMES.get(field, field.replace("_", " "))


def _why(key: Key) -> str:
    if not key.device:
        return "the device is not known"
    return (
        f"no {key.workload} in {key.precision or 'unknown precision'} on {family(key.device)} in the ledger"
    )
