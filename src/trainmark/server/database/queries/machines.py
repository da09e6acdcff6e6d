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
def _results_select() -> Query:
    return (
        select(Result.run_id, Result.throughput, Case.best_throughput, Result.id, Result.facts_id)
        .join(Case, Case.id == Result.case_id)
        .where(Result.run_id.in_(bindparam("run_ids", expanding=True)))
    )


def machines(connection: Connection, most: int = 200) -> tuple[MachineRow, ...]:
    """Return the machines, those seen last first."""
    return tuple(map(machine_row, connection.execute(_machines_select(), {"most": most}).all()))


def machine(connection: Connection, machine_id: int) -> MachineRow | None:
    row = connection.execute(_machine_select(), {"machine_id": machine_id}).one_or_none()
    return machine_row(row) if row else None


def machine_detail(connection: Connection, machine_id: int, most: int = 100) -> MachineDetail | None:
    row = machine(connection, machine_id)
    if row is None:
        return None
    cases = cases_of_machine(connection, machine_id, most)
    return MachineDetail(row, cases, health(connection, machine_id, most))


def health(connection: Connection, machine_id: int, most: int = 100) -> tuple[Health, ...]:
    """Return the newest runs of a machine, oldest first, with what each says of its health."""
    return tuple(own for own, _ in health_with_facts(connection, machine_id, most))


def health_with_facts(
    connection: Connection, machine_id: int, most: int
) -> tuple[tuple[Health, int | None], ...]:
    """Return the same, each with the number of the shared facts of the run's first result."""
    newest = connection.execute(_newest_runs_select(), {"machine_id": machine_id, "most": most}).all()
    runs = newest[::-1]
    shares: dict[int, list[float]] = {}
    first: dict[int, tuple[int, int | None]] = {}
    results = connection.execute(_results_select(), {"run_ids": [row[0] for row in runs]})
    for run_id, throughput, best, number, facts_id in results.all():
        shares.setdefault(run_id, []).append(throughput / best)
        if run_id not in first or number < first[run_id][0]:
            first[run_id] = number, facts_id
    medians = {run_id: statistics.median(own) for run_id, own in shares.items()}
    doubts = decoded(row[-1] for row in runs)
    return tuple(
        (Health(*[*row[1:-1], tuple(codes), medians.get(row[0])]), first.get(row[0], (0, None))[1])
        for row, codes in zip(runs, doubts, strict=True)
    )
