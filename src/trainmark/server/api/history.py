"""A case over time, as the API answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmark.server.database.queries.rows import CaseRow, CaseSeries, ChangeRow


@dataclass(frozen=True)
class HistoryPoint:
    """One result; `run` is the UUID of its run, `values` are the throughputs of its trials."""

    result: int
    run: str
    name: str
    time: float
    throughput: float
    low: float | None
    high: float | None
    values: tuple[float, ...]
    facts: Mapping[str, str]
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


def history_of(series: CaseSeries) -> History:
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
            facts=point.point.facts,
            doubts=point.point.doubts,
            conformance=point.conformance,
        )
        for point in series.points
    )
    return History(series.case, points, tuple(HistoryChange(*marked) for marked in series.changes))
