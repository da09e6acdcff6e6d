"""Runs and their results; trials, also as flat rows, page by page."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, bindparam, select

from trainmark.server.database.models import MachineTable, ResultTable, RunTable, TrialTable
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
    facts_by_id,
    json_text,
    result_rows,
    result_select,
    run_row,
    run_select,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trainmark.server.database.queries.selects import Query


FILTERS = {"suite": RunTable.suite, "machine_id": MachineTable.id}


@functools.cache
def _runs_select(*filters: str) -> Query:
    chosen = run_select().order_by(RunTable.created.desc(), RunTable.id.desc()).limit(MOST).offset(OFFSET)
    return chosen.where(*(FILTERS[name] == bindparam(name) for name in filters))


@functools.cache
def _run_select() -> Query:
    return run_select().where(RunTable.uuid == bindparam("uuid"))


@functools.cache
def _environment_select() -> Query:
    return select(RunTable.environment, RunTable.scrubbed).where(RunTable.id == bindparam("run_id"))


@functools.cache
def _results_select() -> Query:
    return result_select().where(ResultTable.run_id == bindparam("run_id")).order_by(ResultTable.id)


@functools.cache
def _result_select() -> Query:
    return result_select().where(ResultTable.id == bindparam("result_id"))


@functools.cache
def _trials_select() -> Query:
    columns = (
        TrialTable.uuid,
        TrialTable.case,
        TrialTable.repeat,
        TrialTable.outcome,
        TrialTable.detail,
        TrialTable.started,
        TrialTable.seconds,
        TrialTable.throughput,
        json_text(TrialTable.row),
    )
    return select(*columns).where(TrialTable.run_id == bindparam("run_id")).order_by(TrialTable.id)


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


@dataclass(frozen=True)
class TrialPage:
    """`next` is what to ask `after` for the following page, None at the end."""

    trials: tuple[Mapping[str, Any], ...]
    next: int | None


def trial_rows(connection: Connection, run_uuid: str | None, after: int, most: int) -> TrialPage | None:
    """Return rows as `store.overview.trial_rows` has them; None where there is no such run."""
    chosen = (
        select(TrialTable.id, TrialTable.row).where(TrialTable.id > after).order_by(TrialTable.id).limit(most)
    )
    if run_uuid is not None:
        run_id = connection.execute(select(RunTable.id).where(RunTable.uuid == run_uuid)).scalar_one_or_none()
        if run_id is None:
            return None
        chosen = chosen.where(TrialTable.run_id == run_id)
    rows = connection.execute(chosen).all()
    return TrialPage(tuple(row.row for row in rows), rows[-1].id if len(rows) == most else None)
