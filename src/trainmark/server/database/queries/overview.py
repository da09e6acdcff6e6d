"""What changed lately, and how much there is."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, func, select

from trainmark.server.database.models import AuditEntry, Case, Change, Machine, Result, Run
from trainmark.server.database.queries.rows import AuditRow, ChangeRow, Overview
from trainmark.server.database.queries.selects import MOST, change_rows, change_select, run_row, run_select

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query

NEWEST_RUNS = 12


@functools.cache
def _newest_select() -> Query:
    return run_select().order_by(Run.created.desc(), Run.id.desc()).limit(NEWEST_RUNS)


@functools.cache
def _case_totals_select() -> Query:
    return select(
        func.count(), func.coalesce(func.sum(Case.results), 0), func.coalesce(func.max(Case.results), 0)
    ).select_from(Case)


@functools.cache
def _machine_totals_select() -> Query:
    return select(func.count(), func.coalesce(func.sum(Machine.runs), 0)).select_from(Machine)


@functools.cache
def _changes_select() -> Query:
    newest = (Change.time.desc(), Change.id.desc())
    return change_select().where(Change.time >= bindparam("since")).order_by(*newest).limit(MOST)


def overview(connection: Connection, since: float, most: int = 50) -> Overview:
    """Return the changes since a time, the newest runs and the totals."""
    newest = connection.execute(_newest_select())
    cases, results, longest = connection.execute(_case_totals_select()).one()
    machines, runs = connection.execute(_machine_totals_select()).one()
    return Overview(
        changes=changes_since(connection, since, most),
        newest=tuple(map(run_row, newest)),
        runs=int(runs),
        machines=machines,
        cases=cases,
        results=int(results),
        longest=longest,
    )


def changes_since(connection: Connection, since: float, most: int = 50) -> tuple[ChangeRow, ...]:
    return change_rows(connection.execute(_changes_select(), {"since": since, "most": most}).all())


def changes_of_results(connection: Connection, result_ids: Sequence[int]) -> tuple[ChangeRow, ...]:
    """Return the changes that begin at these results."""
    chosen = change_select().where(Change.result_id.in_(result_ids)).order_by(Change.case_id, Change.time)
    return change_rows(connection.execute(chosen).all())


def doubts_of_results(connection: Connection, result_ids: Sequence[int]) -> dict[int, list[str]]:
    rows = connection.execute(select(Result.id, Result.doubts).where(Result.id.in_(result_ids)))
    return {row.id: row.doubts for row in rows}


def audit_log(connection: Connection, most: int = 200, before: float | None = None) -> tuple[AuditRow, ...]:
    """Return the newest entries of the audit log."""
    chosen = select(
        AuditEntry.time,
        AuditEntry.token,
        AuditEntry.address,
        AuditEntry.action,
        AuditEntry.subject,
        AuditEntry.detail,
    ).order_by(AuditEntry.id.desc())
    if before is not None:
        chosen = chosen.where(AuditEntry.time < before)
    return tuple(AuditRow(*row) for row in connection.execute(chosen.limit(most)))
