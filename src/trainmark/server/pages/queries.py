"""What only pages ask: trends of cases, the state of machines, cases of one workload, facts over runs."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.server.database.models import CaseTable, ResultTable, RunTable
from trainmark.server.database.queries.rows import CaseRow, Headline, Health, ResultRow, RunRow, weighty
from trainmark.server.database.queries.selects import (
    MOST,
    case_rows,
    case_select,
    decoded,
    facts_by_id,
    json_text,
    result_rows,
    result_select,
    run_row,
    run_select,
)

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query

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


@functools.cache
def _trends_select() -> Query:
    columns = (CaseTable.id, CaseTable.last_change_time, json_text(CaseTable.recent))
    return select(*columns).where(CaseTable.id.in_(bindparam("case_ids", expanding=True)))


def trends(connection: Connection, case_ids: Collection[int]) -> dict[int, Trend]:
    if not case_ids:
        return {}
    rows = connection.execute(_trends_select(), {"case_ids": sorted(case_ids)}).all()
    recent = decoded(row[-1] for row in rows)
    return {row[0]: Trend(tuple(values), row[1]) for row, values in zip(rows, recent, strict=True)}


@functools.cache
def _runs_since_select() -> Query:
    return select(func.count()).select_from(RunTable).where(RunTable.created >= bindparam("since"))


def runs_since(connection: Connection, since: float) -> int:
    count: int = connection.execute(_runs_since_select(), {"since": since}).scalar_one()
    return count


@dataclass(frozen=True)
class MachineState:
    """How a machine's latest results stand: to the best of each case, and how many are slower or doubtful."""

    cases: int
    of_best: float
    slower: int
    doubtful: int


@functools.cache
def _states_select() -> Query:
    return select(
        CaseTable.machine_id,
        CaseTable.last_throughput,
        CaseTable.best_throughput,
        CaseTable.last_change_ratio,
        json_text(CaseTable.last_doubts),
    )


def machine_states(connection: Connection) -> dict[int, MachineState]:
    rows = connection.execute(_states_select()).all()
    codes = decoded(row[-1] for row in rows)
    shares: dict[int, list[float]] = {}
    slower: dict[int, int] = {}
    doubtful: dict[int, int] = {}
    for (machine_id, last, best, ratio, _), doubts in zip(rows, codes, strict=True):
        shares.setdefault(machine_id, []).append(last / best if best else 1.0)
        slower[machine_id] = slower.get(machine_id, 0) + (ratio is not None and ratio < 1)
        doubtful[machine_id] = doubtful.get(machine_id, 0) + bool(doubts)
    return {
        machine_id: MachineState(len(own), statistics.median(own), slower[machine_id], doubtful[machine_id])
        for machine_id, own in shares.items()
    }


@functools.cache
def _workloads_select() -> Query:
    most_cases = (func.count().desc(), CaseTable.workload)
    return select(CaseTable.workload).group_by(CaseTable.workload).order_by(*most_cases)


def workloads(connection: Connection) -> tuple[str, ...]:
    """Return the workloads that there are, the one with the most cases first."""
    return tuple(connection.execute(_workloads_select()).scalars())


@functools.cache
def _cases_of_select() -> Query:
    fastest = (CaseTable.last_throughput / CaseTable.devices).desc()
    return case_select().where(CaseTable.workload == bindparam("workload")).order_by(fastest).limit(MOST)


def cases_of(connection: Connection, workload: str, most: int) -> tuple[CaseRow, ...]:
    """Return the cases of a workload, the fastest of a device first."""
    return case_rows(connection.execute(_cases_of_select(), {"workload": workload, "most": most}).all())


@functools.cache
def _siblings_select() -> Query:
    # The index begins with the workload, which is a part of the label.
    names = ("workload", "label", "unit")
    same = (getattr(CaseTable, name) == bindparam(name) for name in names)
    others = case_select().where(*same, CaseTable.id != bindparam("case_id"))
    return others.order_by(CaseTable.last_throughput.desc()).limit(MOST)


def siblings(connection: Connection, case: CaseRow, most: int = 20) -> tuple[CaseRow, ...]:
    """Return the same case on other machines."""
    same = {"workload": case.workload, "label": case.label, "unit": case.unit}
    given = {**same, "case_id": case.id, "most": most}
    return case_rows(connection.execute(_siblings_select(), given).all())


@functools.cache
def _runs_select() -> Query:
    return run_select().where(RunTable.uuid.in_(bindparam("uuids", expanding=True)))


def runs_by_uuid(connection: Connection, uuids: Sequence[str]) -> tuple[RunRow, ...]:
    """Return runs in the order of their UUIDs; unknown ones are left out."""
    rows = map(run_row, connection.execute(_runs_select(), {"uuids": uuids}).all())
    by_uuid = {row.uuid: row for row in rows}
    return tuple(by_uuid[uuid] for uuid in uuids if uuid in by_uuid)


@functools.cache
def _results_select() -> Query:
    return (
        result_select()
        .where(ResultTable.run_id.in_(bindparam("run_ids", expanding=True)))
        .order_by(ResultTable.id)
    )


def results_of(connection: Connection, run_ids: Sequence[int]) -> dict[str, list[ResultRow]]:
    """Return the results of several runs, by the UUID of the run."""
    rows = connection.execute(_results_select(), {"run_ids": run_ids}).all()
    grouped: dict[str, list[ResultRow]] = {}
    for result in result_rows(rows, facts_by_id(connection, {row.facts_id for row in rows})):
        grouped.setdefault(result.run_uuid, []).append(result)
    return grouped


@functools.cache
def _headlines_select() -> Query:
    figure = (
        ResultTable.run_id,
        CaseTable.id,
        CaseTable.label,
        CaseTable.unit,
        ResultTable.throughput,
        ResultTable.low,
        ResultTable.high,
    )
    of_runs = ResultTable.run_id.in_(bindparam("run_ids", expanding=True))
    doubts = json_text(ResultTable.doubts), json_text(ResultTable.minor_doubts)
    columns = (*figure, *doubts, json_text(CaseTable.recent))
    return (
        select(*columns)
        .join(CaseTable, CaseTable.id == ResultTable.case_id)
        .where(of_runs)
        .order_by(ResultTable.id)
    )


def headlines(connection: Connection, runs: Sequence[RunRow]) -> dict[int, Headline]:
    """Return what a list says of each run that has a result, by the run's number."""
    if not runs:
        return {}
    rows = connection.execute(_headlines_select(), {"run_ids": [run.id for run in runs]}).all()
    grouped: dict[int, list[Sequence[Any]]] = {}
    for row in rows:
        grouped.setdefault(row[0], []).append(row)
    return {run_id: _headline(own) for run_id, own in grouped.items()}


def _headline(rows: Sequence[Sequence[Any]]) -> Headline:
    _, case_id, label, unit, throughput, low, high, _, _, recent = rows[0]
    stored = iter(decoded(text for row in rows for text in row[-3:-1]))
    pairs = list(zip(stored, stored, strict=True))
    doubts = dict.fromkeys(code for codes, _ in pairs for code in codes)
    grave = {code for codes, minor in pairs for code in weighty(codes, minor)}
    return Headline(
        case_id=case_id,
        label=label,
        unit=unit,
        throughput=throughput,
        low=low,
        high=high,
        more=len(rows) - 1,
        doubts=tuple(doubts),
        minor_doubts=tuple(code for code in doubts if code not in grave),
        recent=tuple(json.loads(recent)),
    )


@functools.cache
def _run_before_select() -> Query:
    same = (RunTable.machine_id == bindparam("machine_id"), RunTable.suite == bindparam("suite"))
    earlier = select(RunTable.uuid).where(*same, RunTable.created < bindparam("created"))
    return earlier.order_by(RunTable.created.desc(), RunTable.id.desc()).limit(1)


def run_before(connection: Connection, run: RunRow) -> str | None:
    """Return the UUID of the run before one, on the same machine and of the same suite."""
    given = {"machine_id": run.machine_id, "suite": run.suite, "created": run.created}
    uuid: str | None = connection.execute(_run_before_select(), given).scalar_one_or_none()
    return uuid


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


def case_keys(connection: Connection, case_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(select(CaseTable.id, CaseTable.key).where(CaseTable.id.in_(sorted(case_ids))))
    return {row.id: row.key for row in rows}
