"""What only pages ask: trends of cases, the state of machines, cases of one workload, facts over runs."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Select, func, select

from trainmark.server.database.models import Case, Machine, Result, Run
from trainmark.server.database.queries.facts import facts_by_id
from trainmark.server.database.queries.rows import CaseRow, ResultRow, RunRow
from trainmark.server.database.queries.selects import (
    case_row,
    case_select,
    result_row,
    result_select,
    run_row,
    run_select,
)

# Facts of a case and not of the machine it ran on.
OF_THE_CASE = frozenset({"framework_version", "steps", "warmup_steps", "command", "commit"})


@dataclass(frozen=True)
class Trend:
    """The newest medians of a case, oldest first, and when its level changed last."""

    values: tuple[float, ...]
    last_change_time: float | None

    def place(self, time: float, confirmed_by: int) -> int | None:
        """Return the index of the first value after a change; None where it lies further back."""
        index = len(self.values) - confirmed_by
        return index if time == self.last_change_time and index > 0 else None


def trends(connection: Connection, case_ids: Collection[int]) -> dict[int, Trend]:
    rows = connection.execute(
        select(Case.id, Case.recent, Case.last_change_time).where(Case.id.in_(sorted(case_ids)))
    )
    return {row.id: Trend(tuple(row.recent), row.last_change_time) for row in rows}


def runs_since(connection: Connection, since: float) -> int:
    return connection.execute(select(func.count()).select_from(Run).where(Run.created >= since)).scalar_one()


@dataclass(frozen=True)
class MachineState:
    """How a machine's latest results stand: to the best of each case, and how many are slower or doubtful."""

    cases: int
    of_best: float
    slower: int
    doubtful: int


def machine_states(connection: Connection) -> dict[int, MachineState]:
    rows = connection.execute(
        select(
            Case.machine_id,
            Case.last_throughput,
            Case.best_throughput,
            Case.last_change_ratio,
            Case.last_doubts,
        )
    )
    shares: dict[int, list[float]] = {}
    slower: dict[int, int] = {}
    doubtful: dict[int, int] = {}
    for machine_id, last, best, ratio, doubts in rows:
        shares.setdefault(machine_id, []).append(last / best if best else 1.0)
        slower[machine_id] = slower.get(machine_id, 0) + (ratio is not None and ratio < 1)
        doubtful[machine_id] = doubtful.get(machine_id, 0) + bool(doubts)
    return {
        machine_id: MachineState(len(own), statistics.median(own), slower[machine_id], doubtful[machine_id])
        for machine_id, own in shares.items()
    }


def matching_cases(
    connection: Connection, words: Sequence[str], most: int, offset: int
) -> tuple[CaseRow, ...]:
    """Return the cases that contain every word, those measured last first."""
    chosen = case_select().order_by(Case.last_time.desc(), Case.id).limit(most).offset(offset)
    for word in words:
        text = func.lower(Case.label + " " + Case.workload + " " + Case.device + " " + Machine.name)
        chosen = chosen.where(text.contains(word.lower(), autoescape=True))
    return tuple(map(case_row, connection.execute(chosen)))


def workloads(connection: Connection) -> tuple[str, ...]:
    """Return the workloads that there are, the one with the most cases first."""
    rows = connection.execute(
        select(Case.workload, func.count())
        .group_by(Case.workload)
        .order_by(func.count().desc(), Case.workload)
    )
    return tuple(row[0] for row in rows)


def cases_of(connection: Connection, workload: str, most: int) -> tuple[CaseRow, ...]:
    """Return the cases of a workload, the fastest of a device first."""
    chosen = case_select().where(Case.workload == workload)
    return tuple(
        map(
            case_row,
            connection.execute(chosen.order_by((Case.last_throughput / Case.devices).desc()).limit(most)),
        )
    )


def siblings(connection: Connection, case: CaseRow, most: int = 20) -> tuple[CaseRow, ...]:
    """Return the same case on other machines."""
    chosen = case_select().where(Case.label == case.label, Case.unit == case.unit, Case.id != case.id)
    return tuple(map(case_row, connection.execute(chosen.order_by(Case.last_throughput.desc()).limit(most))))


def runs_by_uuid(connection: Connection, uuids: Sequence[str]) -> tuple[RunRow, ...]:
    """Return runs in the order of their UUIDs; unknown ones are left out."""
    rows = {
        row.uuid: row for row in map(run_row, connection.execute(run_select().where(Run.uuid.in_(uuids))))
    }
    return tuple(rows[uuid] for uuid in uuids if uuid in rows)


def results_of(connection: Connection, run_ids: Sequence[int]) -> dict[str, list[ResultRow]]:
    """Return the results of several runs, by the UUID of the run."""
    chosen = result_select().where(Result.run_id.in_(run_ids)).order_by(Result.id)
    rows = connection.execute(chosen).all()
    shared = facts_by_id(connection, {row.facts_id for row in rows})
    grouped: dict[str, list[ResultRow]] = {}
    for row in rows:
        result = result_row(row, shared)
        grouped.setdefault(result.run_uuid, []).append(result)
    return grouped


def run_before(connection: Connection, run: RunRow) -> str | None:
    """Return the UUID of the run before one, on the same machine and of the same suite."""
    chosen: Select[Any] = (
        select(Run.uuid)
        .where(Run.machine_id == run.machine_id, Run.suite == run.suite, Run.created < run.created)
        .order_by(Run.created.desc(), Run.id.desc())
        .limit(1)
    )
    return connection.execute(chosen).scalar_one_or_none()


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
    connection: Connection, run_uuids: Sequence[str]
) -> tuple[dict[str, str], tuple[FactOverTime, ...]]:
    """Return the latest facts of a machine, and which of them changed from run to run, the newest first."""
    first = (
        select(func.min(Result.id))
        .join(Run, Run.id == Result.run_id)
        .where(Run.uuid.in_(run_uuids))
        .group_by(Result.run_id)
    )
    rows = connection.execute(
        select(Run.created, Run.uuid, Run.name, Result.facts_id)
        .join(Result, Result.run_id == Run.id)
        .where(Result.id.in_(first))
        .order_by(Run.created, Run.id)
    ).all()
    if not rows:
        return {}, ()
    sets = {
        number: {name: value for name, value in sorted(facts.items()) if name not in OF_THE_CASE}
        for number, facts in facts_by_id(connection, {row.facts_id for row in rows}).items()
    }
    changed = [
        FactOverTime(after.created, after.uuid, after.name, name, old.get(name), new.get(name))
        for before, after in pairwise(rows)
        if before.facts_id != after.facts_id
        for old, new in [(sets[before.facts_id], sets[after.facts_id])]
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    return sets[rows[-1].facts_id], tuple(reversed(changed))


def case_keys(connection: Connection, case_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(select(Case.id, Case.key).where(Case.id.in_(sorted(case_ids))))
    return {row.id: row.key for row in rows}
