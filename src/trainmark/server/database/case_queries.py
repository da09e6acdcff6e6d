"""What is asked of cases: lists, the leaderboard, and one with all its results over time."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.measure.history.series import ORDER_FACTS, RunPoint
from trainmark.server.database.models import CaseTable, ChangeTable, ResultTable, RunTable
from trainmark.server.database.rows import (
    CASE_SELECT,
    CASES,
    CHANGE_SELECT,
    CHANGES,
    MOST,
    OFFSET,
    Board,
    CaseRow,
    CaseSeries,
    SeriesPoint,
    StoredSeries,
    decoded,
    facts_by_id,
    json_text,
    weighty,
)

if TYPE_CHECKING:
    from trainmark.server.database.rows import Query

MOST_POINTS = 2000
CASE = CASE_SELECT.where(CaseTable.id == bindparam("case_id"))
SERIES = (
    select(
        ResultTable.id,
        RunTable.uuid,
        RunTable.name,
        ResultTable.time,
        ResultTable.throughput,
        ResultTable.low,
        ResultTable.high,
        ResultTable.conformance,
        ResultTable.facts_id,
        json_text(ResultTable.own_facts),
        json_text(ResultTable.values),
        json_text(ResultTable.doubts),
        json_text(ResultTable.minor_doubts),
    )
    .join(RunTable, RunTable.id == ResultTable.run_id)
    .where(ResultTable.case_id == bindparam("case_id"))
    .order_by(ResultTable.time.desc(), ResultTable.id.desc())
    .limit(MOST)
)
CHANGES_OF = CHANGE_SELECT.where(ChangeTable.case_id == bindparam("case_id")).order_by(ChangeTable.time)
TRENDS = select(CaseTable.id, CaseTable.last_change_time, json_text(CaseTable.recent)).where(
    CaseTable.id.in_(bindparam("case_ids", expanding=True))
)
WORKLOADS = (
    select(CaseTable.workload).group_by(CaseTable.workload).order_by(func.count().desc(), CaseTable.workload)
)
FASTEST = (
    CASE_SELECT.where(CaseTable.workload == bindparam("workload"))
    .order_by((CaseTable.last_throughput / CaseTable.devices).desc())
    .limit(MOST)
)
# The index begins with the workload, which is a part of the label.
SIBLINGS = (
    CASE_SELECT.where(
        *(getattr(CaseTable, name) == bindparam(name) for name in ("workload", "label", "unit"))
    )
    .where(CaseTable.id != bindparam("case_id"))
    .order_by(CaseTable.last_throughput.desc())
    .limit(MOST)
)


@functools.cache
def _cases_select(*filters: str) -> Query:
    # The page is chosen by the index alone: wide rows are read only where they are shown.
    newest = (CaseTable.last_time.desc(), CaseTable.id.desc())
    page = select(CaseTable.id).where(*(getattr(CaseTable, name) == bindparam(name) for name in filters))
    chosen = page.order_by(*newest).limit(MOST).offset(OFFSET)
    return CASE_SELECT.where(CaseTable.id.in_(chosen)).order_by(*newest)


def cases(
    connection: Connection,
    workload: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    machine_id: int | None = None,
    most: int = 100,
    offset: int = 0,
) -> tuple[CaseRow, ...]:
    """Return cases that match, those measured last first."""
    filters = {"workload": workload, "framework": framework, "device": device, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    return CASES.rows(connection.execute(_cases_select(*given), {**given, "most": most, "offset": offset}))


def case(connection: Connection, case_id: int) -> CaseRow | None:
    return next(iter(CASES.rows(connection.execute(CASE, {"case_id": case_id}))), None)


def stored_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> StoredSeries | None:
    """Return the newest results of a case, oldest first, with the changes among them."""
    line = case(connection, case_id)
    if line is None:
        return None
    results = connection.execute(SERIES, {"case_id": case_id, "most": most}).all()[::-1]
    index = {row[0]: number for number, row in enumerate(results)}
    changes = CHANGES.rows(connection.execute(CHANGES_OF, {"case_id": case_id}))
    return StoredSeries(
        line,
        results,
        facts_by_id(connection, {row.facts_id for row in results}),
        tuple((index[row.result_id], row) for row in changes if row.result_id in index),
    )


def case_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> CaseSeries | None:
    """Return the same as points, with the facts that results can be ordered by."""
    stored = stored_series(connection, case_id, most)
    if stored is None:
        return None
    shared = {number: _order_facts(facts) for number, facts in stored.facts.items()}
    texts = iter(decoded(text for row in stored.results for text in row[-4:]))
    points = []
    for row, own, values, doubts, minor in zip(stored.results, texts, texts, texts, texts, strict=True):
        _, uuid, name, time, _, low, high, _, facts_id = row[:-4]
        point = RunPoint(name, time, tuple(values), {**shared[facts_id], **own}, weighty(doubts, minor))
        points.append(SeriesPoint(uuid, point, low, high, tuple(minor)))
    return CaseSeries(stored.case, tuple(points), stored.changes)


def _order_facts(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: facts[name] for name in ORDER_FACTS.values() if name in facts}


def case_keys(connection: Connection, case_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(select(CaseTable.id, CaseTable.key).where(CaseTable.id.in_(sorted(case_ids))))
    return {row.id: row.key for row in rows}


def siblings(connection: Connection, case: CaseRow, most: int = 20) -> tuple[CaseRow, ...]:
    """Return the same case on other machines."""
    same = {"workload": case.workload, "label": case.label, "unit": case.unit}
    return CASES.rows(connection.execute(SIBLINGS, {**same, "case_id": case.id, "most": most}))


@dataclass(frozen=True)
class Trend:
    """The newest medians of a case, oldest first, and when its level changed last."""

    values: tuple[float, ...]
    last_change_time: float | None

    def place(self, time: float, confirmed_by: int) -> int | None:
        """Return the index of the first value after a change; None where it lies further back."""
        index = len(self.values) - confirmed_by
        return index if time == self.last_change_time and index > 0 else None


def trends(connection: Connection, case_ids: Collection[int]) -> dict[int, Trend]:
    if not case_ids:
        return {}
    rows = connection.execute(TRENDS, {"case_ids": sorted(case_ids)}).all()
    recent = decoded(row[-1] for row in rows)
    return {row[0]: Trend(tuple(values), row[1]) for row, values in zip(rows, recent, strict=True)}


def workloads(connection: Connection) -> tuple[str, ...]:
    """Return the workloads that there are, the one with the most cases first."""
    return tuple(connection.execute(WORKLOADS).scalars())


def fastest_cases(connection: Connection, workload: str, most: int) -> tuple[CaseRow, ...]:
    """Return the cases of a workload, the fastest of a device first."""
    return CASES.rows(connection.execute(FASTEST, {"workload": workload, "most": most}))


@functools.cache
def _leaderboard_select(*filters: str) -> Query:
    place = func.row_number().over(
        partition_by=(CaseTable.workload, CaseTable.device, CaseTable.unit),
        order_by=(CaseTable.last_throughput.desc(), CaseTable.id),
    )
    ranked = select(CaseTable.id, place.label("place"))
    fastest = ranked.where(*(getattr(CaseTable, name) == bindparam(name) for name in filters)).subquery()
    return (
        CASE_SELECT.join(fastest, fastest.c.id == CaseTable.id)
        .where(fastest.c.place <= MOST)
        .order_by(CaseTable.workload, CaseTable.device, CaseTable.unit, fastest.c.place)
    )


def leaderboard(
    connection: Connection, workload: str | None = None, device: str | None = None, most: int = 10
) -> tuple[Board, ...]:
    """Return a board for every workload and device, the `most` fastest cases of each."""
    filters = {"workload": workload, "device": device}
    given = {name: value for name, value in filters.items() if value is not None}
    boards: dict[tuple[str, str, str], list[CaseRow]] = {}
    for row in CASES.rows(connection.execute(_leaderboard_select(*given), {**given, "most": most})):
        boards.setdefault((row.workload, row.device, row.unit), []).append(row)
    return tuple(Board(*group, cases=tuple(own)) for group, own in boards.items())
