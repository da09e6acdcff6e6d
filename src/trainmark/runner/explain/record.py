"""The what-ifs that were verified on this machine, beside those that are published."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.explain.what_if.record import Entry, published
from trainmark.store.files import LocalRecords

VERIFIED = LocalRecords("explain", Entry)
NAME = "what-if"


def known_record() -> tuple[Entry, ...]:
    """Return every verified what-if that is known here; predictions take their intervals from these."""
    own = VERIFIED.read(NAME)
    return (*(entry for entry in published() if entry not in own), *own)


def append(entries: Sequence[Entry]) -> None:
    """Add to this machine's record, in place of earlier entries of the same case, day and version."""
    new = {_identity(entry) for entry in entries}
    VERIFIED.replace(NAME, lambda entry: _identity(entry) in new, *entries)


def _identity(entry: Entry) -> tuple[str, ...]:
    return (
        *(entry.change, entry.workload, entry.setting, entry.framework),
        *(entry.device, entry.date, entry.version),
    )
