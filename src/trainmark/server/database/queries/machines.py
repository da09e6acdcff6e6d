"""Machines and their health over time."""

from __future__ import annotations

import functools
import statistics
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, select

from trainmark.server.database.models import Case, Machine, Result, Run
from trainmark.server.database.queries.cases import cases_of_machine
from trainmark.server.database.queries.rows import Health, MachineDetail, MachineRow
from trainmark.server.database.queries.selects import MOST, decoded, json_text, machine_row, machine_select

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query


@functools.cache
def _machines_select() -> Query:
    return machine_select().order_by(Machine.last_seen.desc(), Machine.id).limit(MOST)


@functools.cache
def _machine_select() -> Query:
    return machine_select().where(Machine.id == bindparam("machine_id"))


@functools.cache
def _newest_runs_select() -> Query:
    return (
        select(Run.id, Run.uuid, Run.name, Run.created, Run.ok, Run.failed, json_text(Run.doubts))
        .where(Run.machine_id == bindparam("machine_id"))
        .order_by(Run.created.desc(), Run.id.desc())
        .limit(MOST)
    )


@functools.cache
def _shares_select() -> Query:
    return (
        select(Result.run_id, Result.throughput, Case.best_throughput)
        .join(Case, Case.id == Result.case_id)
        .where(Result.run_id.in_(bindparam("run_ids", expanding=True)))
    )


def machines(connection: Connection, most: int = 200) -> tuple[MachineRow, ...]:
    """Return the machines, those seen last first."""
    return tuple(map(machine_row, connection.execute(_machines_select(), {"most": most})))


def machine(connection: Connection, machine_id: int, most: int = 100) -> MachineDetail | None:
    row = connection.execute(_machine_select(), {"machine_id": machine_id}).one_or_none()
    if row is None:
        return None
    return MachineDetail(
        machine_row(row),
        cases_of_machine(connection, machine_id, most),
        health(connection, machine_id, most),
    )


def health(connection: Connection, machine_id: int, most: int = 100) -> tuple[Health, ...]:
    """Return the newest runs of a machine, oldest first, with what each says of its health."""
    runs = connection.execute(_newest_runs_select(), {"machine_id": machine_id, "most": most}).all()
    shares: dict[int, list[float]] = {}
    for run_id, throughput, best in connection.execute(
        _shares_select(), {"run_ids": [row.id for row in runs]}
    ):
        shares.setdefault(run_id, []).append(throughput / best)
    doubts = decoded(row[-1] for row in runs)
    return tuple(
        Health(*[*row[1:-1], tuple(codes), statistics.median(shares[row[0]]) if row[0] in shares else None])
        for row, codes in zip(reversed(runs), reversed(doubts), strict=True)
    )
