"""Choosing among the entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from trainmark.base.errors import nearest
from trainmark.logs.ledger.entry import LedgerEntry, device_family, published_names, sizes_of
from trainmark.logs.ledger.load import LedgerError

YEARS = re.compile(r"(20\d\d)(?:-(20\d\d))?")
ASKED: dict[str, Callable[[LedgerEntry], str | None]] = {
    "framework": lambda entry: entry.row.framework,
    "device": lambda entry: device_family(entry.row.device) if entry.row.device else None,
    "precision": lambda entry: entry.row.precision,
    "topology": lambda entry: entry.row.topology,
    "source": lambda entry: entry.source,
    "unit": lambda entry: entry.row.unit,
    "length": lambda entry: str(entry.row.sequence_length) if entry.row.sequence_length else None,
}


def find(
    entries: Sequence[LedgerEntry],
    *,
    workload: str | None = None,
    size: str | None = None,
    length: str | None = None,
    unit: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    precision: str | None = None,
    topology: str | None = None,
    source: str | None = None,
    model: str | None = None,
    year: str | None = None,
) -> tuple[LedgerEntry, ...]:
    """The entries with these values; a value that no entry has is refused, with the nearest that one has.

    `workload` is a published name, or with a `size` the name of a workload here: gpt2 at 124m is gpt2-124m.
    `model` is a part of a workload's name, `length` that of a sequence in tokens, `year` a year or a span of
    years of the publication.
    """
    wanted = {
        "length": length,
        "unit": unit,
        "framework": framework,
        "device": device and device_family(device),
        "precision": precision,
        "topology": topology,
        "source": source,
    }
    matching: Iterable[LedgerEntry] = entries
    if workload is not None:
        matching = _of_workload(entries, workload, size)
    elif size is not None:
        raise LedgerError("a size is one of a workload; give --workload as well.")
    for name, value in wanted.items():
        if value is None:
            continue
        asked = ASKED[name]
        known = {field for entry in entries if (field := asked(entry))}
        if value not in known:
            raise LedgerError(f"the ledger has no {name} '{value}'{nearest(value, known)}")
        matching = [entry for entry in matching if asked(entry) == value]
    if model is not None:
        matching = _of_model(matching, model, {entry.row.workload for entry in entries})
    if year is not None:
        matching = _of_year(matching, year)
    return tuple(matching)


def _of_workload(entries: Sequence[LedgerEntry], workload: str, size: str | None) -> list[LedgerEntry]:
    names = published_names(workload, size)
    if matching := [entry for entry in entries if entry.row.workload in names]:
        return matching
    known = {entry.row.workload for entry in entries}
    if size is None and (sizes := sizes_of(workload, known)):
        raise LedgerError(f"the ledger has {workload} by its sizes; add --size {' or '.join(sizes)}.")
    raise LedgerError(f"the ledger has no workload '{names[0]}'{nearest(names[0], known)}")


def _of_model(entries: Iterable[LedgerEntry], model: str, workloads: set[str]) -> list[LedgerEntry]:
    """Those whose workload has `model` in its name, hyphens and case aside: `llama3` finds `llama3.1-8b`."""
    matching = {workload for workload in workloads if _letters(model) in _letters(workload)}
    if not matching:
        raise LedgerError(f"the ledger has no model '{model}'{nearest(model, workloads)}")
    return [entry for entry in entries if entry.row.workload in matching]


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _of_year(entries: Iterable[LedgerEntry], year: str) -> list[LedgerEntry]:
    span = YEARS.fullmatch(year)
    if not span:
        raise LedgerError(f"'{year}' is no year; write 2024, or 2021-2023.")
    first, last = span[1], span[2] or span[1]
    return [entry for entry in entries if entry.date and first <= entry.date[:4] <= last]
