"""What changed lately, and how much there is."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from trainmark.server.database.models import AuditEntry, Case, Change, Machine, Run
from trainmark.server.database.queries.rows import AuditRow, ChangeRow, Overview
from trainmark.server.database.queries.selects import change_row, change_select, run_row, run_select


def overview(connection: Connection, since: float, most: int = 50) -> Overview:
    """Return the changes since a time, the newest runs and the totals."""
    newest = connection.execute(run_select().order_by(Run.created.desc(), Run.id.desc()).limit(12))
    cases, results = connection.execute(select(func.count(), func.coalesce(func.sum(Case.results), 0))).one()
    machines, runs = connection.execute(
        select(func.count(), func.coalesce(func.sum(Machine.runs), 0)).select_from(Machine)
    ).one()
    return Overview(
        changes=changes_since(connection, since, most),
        newest=tuple(map(run_row, newest)),
        runs=int(runs),
        machines=machines,
        cases=cases,
        results=int(results),
    )


def changes_since(connection: Connection, since: float, most: int = 50) -> tuple[ChangeRow, ...]:
    rows = connection.execute(
        change_select().where(Change.time >= since).order_by(Change.time.desc(), Change.id.desc()).limit(most)
    )
    return tuple(map(change_row, rows))


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
