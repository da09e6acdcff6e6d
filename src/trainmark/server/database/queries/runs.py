"""Runs, their results and trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from trainmark.server.database.models import Machine, Result, Run, Trial
from trainmark.server.database.queries.facts import facts_by_id
from trainmark.server.database.queries.rows import (
    ResultRow,
    RunDetail,
    RunRow,
    Scrubbed,
    ScrubbedRow,
    TrialRow,
)
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
    recorded = connection.execute(select(Run.environment, Run.scrubbed).where(Run.id == line.id)).one()
    return RunDetail(
        line,
        recorded.environment,
        _scrubbed(recorded.scrubbed),
        results(connection, line.id),
        trials(connection, line.id),
    )


def _scrubbed(stored: Mapping[str, Any] | None) -> Scrubbed | None:
    if stored is None:
        return None
    notes = (ScrubbedRow(**{**note, "places": tuple(note["places"])}) for note in stored["notes"])
    return Scrubbed(stored["count"], tuple(notes))


def results(connection: Connection, run_id: int) -> tuple[ResultRow, ...]:
    chosen = result_select().where(Result.run_id == run_id).order_by(Result.id)
    return _with_facts(connection, connection.execute(chosen).all())


def result(connection: Connection, result_id: int) -> ResultRow | None:
    rows = connection.execute(result_select().where(Result.id == result_id)).all()
    return _with_facts(connection, rows)[0] if rows else None


def _with_facts(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[ResultRow, ...]:
    shared = facts_by_id(connection, {row.facts_id for row in rows})
    return tuple(result_row(row, shared) for row in rows)


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
