"""Runs, their results and trials."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, bindparam, select

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
from trainmark.server.database.queries.selects import (
    MOST,
    OFFSET,
    decoded,
    json_text,
    result_rows,
    result_select,
    run_row,
    run_select,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trainmark.server.database.queries.selects import Query

FILTERS = {"suite": Run.suite, "machine_id": Machine.id}


@functools.cache
def _runs_select(*filters: str) -> Query:
    chosen = run_select().order_by(Run.created.desc(), Run.id.desc()).limit(MOST).offset(OFFSET)
    return chosen.where(*(FILTERS[name] == bindparam(name) for name in filters))


@functools.cache
def _run_select() -> Query:
    return run_select().where(Run.uuid == bindparam("uuid"))


@functools.cache
def _environment_select() -> Query:
    return select(Run.environment, Run.scrubbed).where(Run.id == bindparam("run_id"))


@functools.cache
def _results_select() -> Query:
    return result_select().where(Result.run_id == bindparam("run_id")).order_by(Result.id)


@functools.cache
def _result_select() -> Query:
    return result_select().where(Result.id == bindparam("result_id"))


@functools.cache
def _trials_select() -> Query:
    columns = (
        Trial.uuid,
        Trial.case,
        Trial.repeat,
        Trial.outcome,
        Trial.detail,
        Trial.started,
        Trial.seconds,
        Trial.throughput,
        json_text(Trial.row),
    )
    return select(*columns).where(Trial.run_id == bindparam("run_id")).order_by(Trial.id)


def runs(
    connection: Connection,
    suite: str | None = None,
    machine_id: int | None = None,
    most: int = 50,
    offset: int = 0,
) -> tuple[RunRow, ...]:
    """Return runs that match, the newest first."""
    filters = {"suite": suite, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    rows = connection.execute(_runs_select(*given), {**given, "most": most, "offset": offset})
    return tuple(map(run_row, rows))


def run(connection: Connection, uuid: str) -> RunDetail | None:
    row = connection.execute(_run_select(), {"uuid": uuid}).one_or_none()
    if row is None:
        return None
    line = run_row(row)
    recorded = connection.execute(_environment_select(), {"run_id": line.id}).one()
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
    return _with_facts(connection, connection.execute(_results_select(), {"run_id": run_id}).all())


def result(connection: Connection, result_id: int) -> ResultRow | None:
    rows = connection.execute(_result_select(), {"result_id": result_id}).all()
    return _with_facts(connection, rows)[0] if rows else None


def _with_facts(
    connection: Connection, rows: Sequence[Row[Unpack[tuple[Any, ...]]]]
) -> tuple[ResultRow, ...]:
    return result_rows(rows, facts_by_id(connection, {row.facts_id for row in rows}))


def trials(connection: Connection, run_id: int) -> tuple[TrialRow, ...]:
    rows = connection.execute(_trials_select(), {"run_id": run_id}).all()
    stored = decoded(row[-1] for row in rows)
    return tuple(TrialRow(*[*row[:-1], own]) for row, own in zip(rows, stored, strict=True))
