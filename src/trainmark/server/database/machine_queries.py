"""What is asked of machines: the list, how the latest results of each stand, and the health of one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection, bindparam, select

from trainmark.server.database.case_queries import cases
from trainmark.server.database.models import CaseTable, MachineTable, ResultTable, RunTable
from trainmark.server.database.rows import (
    MACHINES,
    MOST,
    Health,
    MachineDetail,
    MachineRow,
    decoded,
    facts_by_id,
    json_text,
)

# Facts of a case and not of the machine it ran on.
OF_THE_CASE = frozenset({"framework_version", "steps", "warmup_steps", "command", "commit"})
MACHINES_SEEN = MACHINES.select.order_by(MachineTable.last_seen.desc(), MachineTable.id).limit(MOST)
MACHINE = MACHINES.select.where(MachineTable.id == bindparam("machine_id"))
NEWEST_RUNS = (
    select(
        RunTable.id,
        RunTable.uuid,
        RunTable.name,
        RunTable.created,
        RunTable.ok,
        RunTable.failed,
        json_text(RunTable.doubts),
    )
    .where(RunTable.machine_id == bindparam("machine_id"))
    .order_by(RunTable.created.desc(), RunTable.id.desc())
    .limit(MOST)
)
SHARES = (
    select(
        ResultTable.run_id,
        ResultTable.throughput,
        CaseTable.best_throughput,
        ResultTable.id,
        ResultTable.facts_id,
    )
    .join(CaseTable, CaseTable.id == ResultTable.case_id)
    .where(ResultTable.run_id.in_(bindparam("run_ids", expanding=True)))
)
STATES = select(
    CaseTable.machine_id,
    CaseTable.last_throughput,
    CaseTable.best_throughput,
    CaseTable.last_change_ratio,
    json_text(CaseTable.last_doubts),
)


def machines(connection: Connection, most: int = 200) -> tuple[MachineRow, ...]:
    """Return the machines, those seen last first."""
    return MACHINES.rows(connection.execute(MACHINES_SEEN, {"most": most}))


def machine(connection: Connection, machine_id: int) -> MachineRow | None:
    return next(iter(MACHINES.rows(connection.execute(MACHINE, {"machine_id": machine_id}))), None)


def machine_detail(connection: Connection, machine_id: int, most: int = 100) -> MachineDetail | None:
    row = machine(connection, machine_id)
    if row is None:
        return None
    health = tuple(own for own, _ in health_with_facts(connection, machine_id, most))
    return MachineDetail(row, cases(connection, machine_id=machine_id, most=most), health)


def health_with_facts(
    connection: Connection, machine_id: int, most: int
) -> tuple[tuple[Health, int | None], ...]:
    """Return the newest runs of a machine, oldest first, with what each says of its health.

    Beside each stands the number of the shared facts of the run's first result.
    """
    newest = connection.execute(NEWEST_RUNS, {"machine_id": machine_id, "most": most}).all()
    runs = newest[::-1]
    shares: dict[int, list[float]] = {}
    first: dict[int, tuple[int, int | None]] = {}
    results = connection.execute(SHARES, {"run_ids": [row[0] for row in runs]})
    for run_id, throughput, best, number, facts_id in results.all():
        shares.setdefault(run_id, []).append(throughput / best)
        if run_id not in first or number < first[run_id][0]:
            first[run_id] = number, facts_id
    medians = {run_id: statistics.median(own) for run_id, own in shares.items()}
    doubts = decoded(row[-1] for row in runs)
    return tuple(
        (
            Health(uuid, name, created, ok, failed, tuple(codes), medians.get(run_id)),
            first.get(run_id, (0, None))[1],
        )
        for (run_id, uuid, name, created, ok, failed, _), codes in zip(runs, doubts, strict=True)
    )


@dataclass(frozen=True)
class MachineState:
    """How a machine's latest results stand: to the best of each case, and how many are slower or doubtful."""

    cases: int
    of_best: float
    slower: int
    doubtful: int


def machine_states(connection: Connection) -> dict[int, MachineState]:
    rows = connection.execute(STATES).all()
    doubts = decoded(row[-1] for row in rows)
    states: dict[int, list[tuple[float, bool, bool]]] = {}
    for (machine_id, last, best, ratio, _), codes in zip(rows, doubts, strict=True):
        state = last / best if best else 1.0, ratio is not None and ratio < 1, bool(codes)
        states.setdefault(machine_id, []).append(state)
    return {
        machine_id: MachineState(len(shares), statistics.median(shares), sum(slower), sum(doubtful))
        for machine_id, own in states.items()
        for shares, slower, doubtful in [zip(*own, strict=True)]
    }


@dataclass(frozen=True)
class FactOverTime:
    """A fact of a machine that differs between two runs that follow each other."""

    time: float
    run_uuid: str
    run: str
    name: str
    before: str | None
    after: str | None


def facts_over_time(
    connection: Connection, runs: Sequence[tuple[Health, int | None]]
) -> tuple[dict[str, str], tuple[FactOverTime, ...]]:
    """Return the latest facts of a machine, and which of them changed from run to run, the newest first."""
    known = [(run, facts_id) for run, facts_id in runs if facts_id is not None]
    if not known:
        return {}, ()
    sets = {
        number: {name: value for name, value in sorted(facts.items()) if name not in OF_THE_CASE}
        for number, facts in facts_by_id(connection, {facts_id for _, facts_id in known}).items()
    }
    changed = [
        FactOverTime(run.time, run.run_uuid, run.run, name, old.get(name), new.get(name))
        for (_, before), (run, after) in pairwise(known)
        if before != after
        for old, new in [(sets[before], sets[after])]
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    return sets[known[-1][1]], tuple(reversed(changed))
