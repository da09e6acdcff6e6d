"""A case over time, as the API answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmark.server.database.queries.rows import CaseRow, CaseSeries, ChangeRow


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
    values: tuple[float, ...]
    facts: Mapping[str, str | None]
    doubts: tuple[str, ...]
    conformance: str


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


def changed_facts(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return the facts that differ, None for those that are gone."""
    names = sorted(before.keys() | after.keys())
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def history_of(series: CaseSeries) -> History:
    recorded = [dict(point.point.facts) for point in series.points]
    points = tuple(
        HistoryPoint(
            result=point.result_id,
            run=point.run_uuid,
            name=point.run,
            time=point.point.time,
            throughput=point.point.median,
            low=point.low,
            high=point.high,
            values=point.point.values,
            facts=changed_facts(before, facts),
            doubts=point.point.doubts,
            conformance=point.conformance,
        )
        for point, before, facts in zip(series.points, [{}, *recorded], recorded, strict=False)
    )
    return History(series.case, points, tuple(HistoryChange(*marked) for marked in series.changes))
