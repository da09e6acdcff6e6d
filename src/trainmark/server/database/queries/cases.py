"""Cases and their histories."""

from __future__ import annotations

from collections import ChainMap

from sqlalchemy import Connection, func, select

from trainmark.history.series import Point
from trainmark.server.database.models import Case, Change, Result, Run
from trainmark.server.database.queries.facts import facts_by_id
from trainmark.server.database.queries.rows import Board, CaseRow, CaseSeries, SeriesPoint
from trainmark.server.database.queries.selects import case_row, case_select, change_row, change_select

MOST_POINTS = 2000


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
    chosen = case_select().order_by(Case.last_time.desc(), Case.id)
    if workload is not None:
        chosen = chosen.where(Case.workload == workload)
    if framework is not None:
        chosen = chosen.where(Case.framework == framework)
    if device is not None:
        chosen = chosen.where(Case.device == device)
    if machine_id is not None:
        chosen = chosen.where(Case.machine_id == machine_id)
    return tuple(map(case_row, connection.execute(chosen.limit(most).offset(offset))))


def case(connection: Connection, case_id: int) -> CaseRow | None:
    row = connection.execute(case_select().where(Case.id == case_id)).one_or_none()
    return case_row(row) if row else None


def case_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> CaseSeries | None:
    """Return the newest results of a case, oldest first, with the changes among them."""
    line = case(connection, case_id)
    if line is None:
        return None
    rows = connection.execute(
        select(
            Result.id,
            Run.uuid,
            Run.name,
            Result.time,
            Result.values.label("trial_values"),
            Result.facts_id,
            Result.own_facts,
            Result.doubts,
            Result.low,
            Result.high,
            Result.conformance,
        )
        .join(Run, Run.id == Result.run_id)
        .where(Result.case_id == case_id)
        .order_by(Result.time.desc(), Result.id.desc())
        .limit(most)
    ).all()
    shared = facts_by_id(connection, {row.facts_id for row in rows})
    points = tuple(
        SeriesPoint(
            row.id,
            row.uuid,
            row.name,
            Point(
                row.uuid,
                row.time,
                tuple(row.trial_values),
                ChainMap(row.own_facts, shared[row.facts_id]),
                tuple(row.doubts),
            ),
            row.low,
            row.high,
            row.conformance,
        )
        for row in reversed(rows)
    )
    index = {point.result_id: number for number, point in enumerate(points)}
    changes = map(
        change_row, connection.execute(change_select().where(Change.case_id == case_id).order_by(Change.time))
    )
    return CaseSeries(
        line, points, tuple((index[row.result_id], row) for row in changes if row.result_id in index)
    )


def leaderboard(
    connection: Connection, workload: str | None = None, device: str | None = None, most: int = 10
) -> tuple[Board, ...]:
    """Return a board for every workload and device, the `most` fastest cases of each."""
    place = func.row_number().over(
        partition_by=(Case.workload, Case.device, Case.unit), order_by=(Case.last_throughput.desc(), Case.id)
    )
    ranked = select(Case.id, place.label("place"))
    if workload is not None:
        ranked = ranked.where(Case.workload == workload)
    if device is not None:
        ranked = ranked.where(Case.device == device)
    fastest = ranked.subquery()
    chosen = (
        case_select()
        .join(fastest, fastest.c.id == Case.id)
        .where(fastest.c.place <= most)
        .order_by(Case.workload, Case.device, Case.unit, fastest.c.place)
    )
    boards: dict[tuple[str, str, str], list[CaseRow]] = {}
    for row in map(case_row, connection.execute(chosen)):
        boards.setdefault((row.workload, row.device, row.unit), []).append(row)
    return tuple(Board(*group, cases=tuple(rows)) for group, rows in boards.items())
