"""Machines and their health over time."""

from __future__ import annotations

import statistics

from sqlalchemy import Connection, select

from trainmark.server.database.models import Case, Machine, Result, Run
from trainmark.server.database.queries.cases import cases
from trainmark.server.database.queries.rows import Health, MachineDetail, MachineRow
from trainmark.server.database.queries.selects import machine_row, machine_select


def machines(connection: Connection, most: int = 200) -> tuple[MachineRow, ...]:
    """Return the machines, those seen last first."""
    chosen = machine_select().order_by(Machine.last_seen.desc(), Machine.id).limit(most)
    return tuple(map(machine_row, connection.execute(chosen)))


def machine(connection: Connection, machine_id: int, most: int = 100) -> MachineDetail | None:
    row = connection.execute(machine_select().where(Machine.id == machine_id)).one_or_none()
    if row is None:
        return None
    return MachineDetail(
        machine_row(row),
        cases(connection, machine_id=machine_id, most=most),
        health(connection, machine_id, most),
    )


def health(connection: Connection, machine_id: int, most: int = 100) -> tuple[Health, ...]:
    """Return the newest runs of a machine, oldest first, with what each says of its health."""
    runs = connection.execute(
        select(Run.id, Run.uuid, Run.name, Run.created, Run.ok, Run.failed, Run.doubts)
        .where(Run.machine_id == machine_id)
        .order_by(Run.created.desc(), Run.id.desc())
        .limit(most)
    ).all()
    shares: dict[int, list[float]] = {}
    for run_id, throughput, best in connection.execute(
        select(Result.run_id, Result.throughput, Case.best_throughput)
        .join(Case, Case.id == Result.case_id)
        .where(Result.run_id.in_([row.id for row in runs]))
    ):
        shares.setdefault(run_id, []).append(throughput / best)
    return tuple(
        Health(
            row.uuid,
            row.name,
            row.created,
            row.ok,
            row.failed,
            tuple(row.doubts),
            statistics.median(shares[row.id]) if row.id in shares else None,
        )
        for row in reversed(runs)
    )
