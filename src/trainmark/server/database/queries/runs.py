"""Runs, their results and trials."""

from __future__ import annotations

from sqlalchemy import Connection, select

from trainmark.server.database.models import Machine, Result, Run, Trial
from trainmark.server.database.queries.rows import ResultRow, RunDetail, RunRow, TrialRow
from trainmark.server.database.queries.selects import result_row, result_select, run_row, run_select


def runs(
    connection: Connection,
    suite: str | None = None,
    machine_id: int | None = None,
    most: int = 50,
    offset: int = 0,
) -> tuple[RunRow, ...]:
    """Return runs that match, the newest first."""
    chosen = run_select().order_by(Run.created.desc(), Run.id.desc())
    if suite is not None:
        chosen = chosen.where(Run.suite == suite)
    if machine_id is not None:
        chosen = chosen.where(Machine.id == machine_id)
    return tuple(map(run_row, connection.execute(chosen.limit(most).offset(offset))))


def run(connection: Connection, uuid: str) -> RunDetail | None:
    row = connection.execute(run_select().where(Run.uuid == uuid)).one_or_none()
    if row is None:
        return None
    line = run_row(row)
    environment = connection.execute(select(Run.environment).where(Run.id == line.id)).scalar_one()
    return RunDetail(line, environment, results(connection, line.id), trials(connection, line.id))


def results(connection: Connection, run_id: int) -> tuple[ResultRow, ...]:
    rows = connection.execute(result_select().where(Result.run_id == run_id).order_by(Result.id))
    return tuple(map(result_row, rows))


def result(connection: Connection, result_id: int) -> ResultRow | None:
    row = connection.execute(result_select().where(Result.id == result_id)).one_or_none()
    return result_row(row) if row else None


def trials(connection: Connection, run_id: int) -> tuple[TrialRow, ...]:
    columns = (
        Trial.uuid,
        Trial.case,
        Trial.repeat,
        Trial.outcome,
        Trial.detail,
        Trial.started,
        Trial.seconds,
        Trial.throughput,
        Trial.row,
    )
    rows = connection.execute(select(*columns).where(Trial.run_id == run_id).order_by(Trial.id))
    return tuple(TrialRow(*row) for row in rows)
