"""Cases and their histories."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.measure.history.series import ORDER_FACTS, RunPoint
from trainmark.server.database.models import Case, Change, Result, Run
from trainmark.server.database.queries.facts import facts_by_id
from trainmark.server.database.queries.rows import (
    Board,
    CaseRow,
    CaseSeries,
    SeriesPoint,
    StoredSeries,
    weighty,
)
from trainmark.server.database.queries.selects import (
    MOST,
    OFFSET,
    case_rows,
    case_select,
    change_rows,
    change_select,
    decoded,
    json_text,
)

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query

MOST_POINTS = 2000


@functools.cache
def _cases_select(*filters: str) -> Query:
    # The page is chosen by the index alone: wide rows are read only where they are shown.
    newest = (Case.last_time.desc(), Case.id.desc())
    page = select(Case.id).where(*(getattr(Case, name) == bindparam(name) for name in filters))
    chosen = page.order_by(*newest).limit(MOST).offset(OFFSET)
    return case_select().where(Case.id.in_(chosen)).order_by(*newest)


@functools.cache
def _case_select() -> Query:
    return case_select().where(Case.id == bindparam("case_id"))


@functools.cache
def series_select() -> Query:
    return (
        select(
            Result.id,
            Run.uuid,
            Run.name,
            Result.time,
            Result.throughput,
            Result.low,
            Result.high,
            Result.conformance,
            Result.facts_id,
            json_text(Result.own_facts),
            json_text(Result.values),
            json_text(Result.doubts),
            json_text(Result.minor_doubts),
        )
        .join(Run, Run.id == Result.run_id)
        .where(Result.case_id == bindparam("case_id"))
        .order_by(Result.time.desc(), Result.id.desc())
        .limit(MOST)
    )


@functools.cache
def _changes_select() -> Query:
    return change_select().where(Change.case_id == bindparam("case_id")).order_by(Change.time)


def case_records(
    connection: Connection,
    workload: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    machine_id: int | None = None,
    most: int = 100,
    offset: int = 0,
) -> Sequence[Sequence[Any]]:
    """Return cases that match as rows of `case_select`, those measured last first."""
    filters = {"workload": workload, "framework": framework, "device": device, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    return connection.execute(_cases_select(*given), {**given, "most": most, "offset": offset}).all()


def cases_of_machine(connection: Connection, machine_id: int, most: int = 100) -> tuple[CaseRow, ...]:
    return case_rows(case_records(connection, machine_id=machine_id, most=most))


def case(connection: Connection, case_id: int) -> CaseRow | None:
    return next(iter(case_rows(connection.execute(_case_select(), {"case_id": case_id}).all())), None)


def stored_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> StoredSeries | None:
    """Return the newest results of a case, oldest first, with the changes among them."""
    line = case(connection, case_id)
    if line is None:
        return None
    results = connection.execute(series_select(), {"case_id": case_id, "most": most}).all()[::-1]
    index = {row[0]: number for number, row in enumerate(results)}
    changes = change_rows(connection.execute(_changes_select(), {"case_id": case_id}).all())
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


@functools.cache
def _leaderboard_select(*filters: str) -> Query:
    place = func.row_number().over(
        partition_by=(Case.workload, Case.device, Case.unit), order_by=(Case.last_throughput.desc(), Case.id)
    )
    ranked = select(Case.id, place.label("place"))
    fastest = ranked.where(*(getattr(Case, name) == bindparam(name) for name in filters)).subquery()
    return (
        case_select()
        .join(fastest, fastest.c.id == Case.id)
        .where(fastest.c.place <= MOST)
        .order_by(Case.workload, Case.device, Case.unit, fastest.c.place)
    )


def leaderboard(
    connection: Connection, workload: str | None = None, device: str | None = None, most: int = 10
) -> tuple[Board, ...]:
    """Return a board for every workload and device, the `most` fastest cases of each."""
    filters = {"workload": workload, "device": device}
    given = {name: value for name, value in filters.items() if value is not None}
    rows = connection.execute(_leaderboard_select(*given), {**given, "most": most})
    boards: dict[tuple[str, str, str], list[CaseRow]] = {}
    for row in case_rows(rows.all()):
        boards.setdefault((row.workload, row.device, row.unit), []).append(row)
    return tuple(Board(*group, cases=tuple(own)) for group, own in boards.items())
