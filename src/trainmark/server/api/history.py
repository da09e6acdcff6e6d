"""A case over time, as the API answers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmark.server.api.encode import Encoded, encode, encoded_rows
from trainmark.server.database.queries.rows import CaseRow, ChangeRow, StoredSeries
from trainmark.server.database.queries.selects import decoded

STORED_COLUMNS = 2
Facts = Mapping[str, str]


@dataclass(frozen=True)
class HistoryPoint:
    """One result; `run` is the UUID of its run, `values` are the throughputs of its trials.

    The first point has all recorded `facts`, a later one those that differ from the point before: None where
    a fact is not recorded any more. Most facts are the same for years.
    """

    result: int
    run: str
    name: str
    time: float
    throughput: float
    low: float | None
    high: float | None
    conformance: str
    facts: Mapping[str, str | None]
    values: tuple[float, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class HistoryChange:
    """`index` is the place of its first point."""

    index: int
    change: ChangeRow


@dataclass(frozen=True)
class History:
    case: CaseRow
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...]


def encoded_history(series: StoredSeries) -> Encoded:
    """Return a `History` as JSON."""
    points = encoded_rows(HistoryPoint, _points(series), STORED_COLUMNS)
    changes = encode([HistoryChange(*marked) for marked in series.changes])
    return Encoded(f'{{"case":{encode(series.case)},"points":{points},"changes":{changes}}}')


def _points(series: StoredSeries) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each `HistoryPoint`, its trials' throughputs and doubts as they are stored."""
    no_facts: Facts = {}
    before = no_facts, no_facts
    own_facts = decoded(row[-4] for row in series.results)
    for row, own in zip(series.results, own_facts, strict=True):
        number, uuid, name, time, throughput, low, high, conformance, facts_id, _, values, doubts, _ = row
        facts = own, series.facts[facts_id]
        changed = changed_facts(before, facts)
        yield number, uuid, name, time, throughput, low, high, conformance, changed, values, doubts
        before = facts


def changed_facts(before: tuple[Facts, Facts], after: tuple[Facts, Facts]) -> dict[str, str | None]:
    """Return the facts that differ, None for those that are gone; a side is its own and its shared facts."""
    (old, old_shared), (new, new_shared) = before, after
    names = old.keys() | new.keys()
    if old_shared is not new_shared:
        names |= old_shared.keys() | new_shared.keys()
    return {
        name: now
        for name in sorted(names)
        if (now := new.get(name, new_shared.get(name))) != old.get(name, old_shared.get(name))
    }
