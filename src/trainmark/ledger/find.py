"""Choosing among the entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from trainmark.errors import nearest
from trainmark.ledger.device import family
from trainmark.ledger.entry import Entry
from trainmark.ledger.load import LedgerError

ASKED: dict[str, Callable[[Entry], str | None]] = {
    "framework": lambda entry: entry.row.framework,
    "device": lambda entry: family(entry.row.device) if entry.row.device else None,
    "precision": lambda entry: entry.row.precision,
    "topology": lambda entry: entry.row.topology,
    "source": lambda entry: entry.source,
    "workload": lambda entry: entry.row.workload,
}


def find(
    entries: Sequence[Entry],
    *,
    workload: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    precision: str | None = None,
    topology: str | None = None,
    source: str | None = None,
) -> tuple[Entry, ...]:
    """The entries with these values; a value that no entry has is refused, with the nearest that one has."""
    wanted = {
        "workload": workload,
        "framework": framework,
        "device": device and family(device),
        "precision": precision,
        "topology": topology,
        "source": source,
    }
    found: Iterable[Entry] = entries
    for name, value in wanted.items():
        if value is None:
            continue
        asked = ASKED[name]
        known = {said for entry in entries if (said := asked(entry))}
        if value not in known:
            raise LedgerError(f"the ledger has no {name} '{value}'{nearest(value, known)}")
        found = [entry for entry in found if asked(entry) == value]
    return tuple(found)
