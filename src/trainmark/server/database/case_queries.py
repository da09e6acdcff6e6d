"""What is asked of cases: lists, the leaderboard, one over time; and of machines and their health."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.measure.history.series import ORDER_FACTS, RunPoint
from trainmark.server.database.models import CaseTable, ChangeTable, MachineTable, ResultTable, RunTable
from trainmark.server.database.rows import (
    CASE_SELECT,
    CASES,
    CHANGE_SELECT,
    CHANGES,
    MACHINES,
    MOST,
    OFFSET,
    Board,
    CaseRow,
    CaseSeries,
    Health,
    MachineDetail,
    MachineRow,
    SeriesPoint,
    StoredSeries,
    decoded,
    facts_by_id,
    json_text,
    weighty,
)

if TYPE_CHECKING:
    from trainmark.server.database.rows import Query

MOST_POINTS = 2000
CASE = CASE_SELECT.where(CaseTable.id == bindparam("case_id"))
SERIES = (
    select(
        ResultTable.id,
        RunTable.uuid,
        RunTable.name,
        ResultTable.time,
        ResultTable.throughput,
        ResultTable.low,
        ResultTable.high,
        ResultTable.conformance,
        ResultTable.facts_id,
        json_text(ResultTable.own_facts),
        json_text(ResultTable.values),
        json_text(ResultTable.doubts),
        json_text(ResultTable.minor_doubts),
    )
    .join(RunTable, RunTable.id == ResultTable.run_id)
    .where(ResultTable.case_id == bindparam("case_id"))
    .order_by(ResultTable.time.desc(), ResultTable.id.desc())
    .limit(MOST)
)
CHANGES_OF = CHANGE_SELECT.where(ChangeTable.case_id == bindparam("case_id")).order_by(ChangeTable.time)
TRENDS = select(CaseTable.id, CaseTable.last_change_time, json_text(CaseTable.recent)).where(
    CaseTable.id.in_(bindparam("case_ids", expanding=True))
)
WORKLOADS = (
    select(CaseTable.workload).group_by(CaseTable.workload).order_by(func.count().desc(), CaseTable.workload)
)
FASTEST = (
    CASE_SELECT.where(CaseTable.workload == bindparam("workload"))
    .order_by((CaseTable.last_throughput / CaseTable.devices).desc())
    .limit(MOST)
)
# The index begins with the workload, which is a part of the label.
SIBLINGS = (
    CASE_SELECT.where(
        *(getattr(CaseTable, name) == bindparam(name) for name in ("workload", "label", "unit"))
    )
    .where(CaseTable.id != bindparam("case_id"))
    .order_by(CaseTable.last_throughput.desc())
    .limit(MOST)
)


@functools.cache
def _cases_select(*filters: str) -> Query:
    # The page is chosen by the index alone: wide rows are read only where they are shown.
    newest = (CaseTable.last_time.desc(), CaseTable.id.desc())
    page = select(CaseTable.id).where(*(getattr(CaseTable, name) == bindparam(name) for name in filters))
    chosen = page.order_by(*newest).limit(MOST).offset(OFFSET)
    return CASE_SELECT.where(CaseTable.id.in_(chosen)).order_by(*newest)


def cases(
    connection: Connection,
    workload: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    machine_id: int | None = None,
    most: int = 100,
    offset: int = 0,
) -> tuple[CaseRow, ...]:
    """Return cases that match, those measured last first."""
    filters = {"workload": workload, "framework": framework, "device": device, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    return CASES.rows(connection.execute(_cases_select(*given), {**given, "most": most, "offset": offset}))


def case(connection: Connection, case_id: int) -> CaseRow | None:
    return next(iter(CASES.rows(connection.execute(CASE, {"case_id": case_id}))), None)


def stored_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> StoredSeries | None:
    """Return the newest results of a case, oldest first, with the changes among them."""
    line = case(connection, case_id)
    if line is None:
        return None
    results = connection.execute(SERIES, {"case_id": case_id, "most": most}).all()[::-1]
    index = {row[0]: number for number, row in enumerate(results)}
    changes = CHANGES.rows(connection.execute(CHANGES_OF, {"case_id": case_id}))
    return StoredSeries(
        line,
        results,
        facts_by_id(connection, {row.facts_id for row in results}),
        tuple((index[row.result_id], row) for row in changes if row.result_id in index),
    )


def case_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> CaseSeries | None:
    """Return the same as points, with the facts that results can be ordered by."""
    stored = stored_series(connection, case_id, most)
    if stored is None:
        return None
    shared = {number: _order_facts(facts) for number, facts in stored.facts.items()}
    texts = iter(decoded(text for row in stored.results for text in row[-4:]))
    points = []
    for row, own, values, doubts, minor in zip(stored.results, texts, texts, texts, texts, strict=True):
        _, uuid, name, time, _, low, high, _, facts_id = row[:-4]
        point = RunPoint(name, time, tuple(values), {**shared[facts_id], **own}, weighty(doubts, minor))
        points.append(SeriesPoint(uuid, point, low, high, tuple(minor)))
    return CaseSeries(stored.case, tuple(points), stored.changes)


def _order_facts(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: facts[name] for name in ORDER_FACTS.values() if name in facts}


def case_keys(connection: Connection, case_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(select(CaseTable.id, CaseTable.key).where(CaseTable.id.in_(sorted(case_ids))))
    return {row.id: row.key for row in rows}


def siblings(connection: Connection, case: CaseRow, most: int = 20) -> tuple[CaseRow, ...]:
    """Return the same case on other machines."""
    same = {"workload": case.workload, "label": case.label, "unit": case.unit}
    return CASES.rows(connection.execute(SIBLINGS, {**same, "case_id": case.id, "most": most}))


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
    if not case_ids:
        return {}
    rows = connection.execute(TRENDS, {"case_ids": sorted(case_ids)}).all()
    recent = decoded(row[-1] for row in rows)
    return {row[0]: Trend(tuple(values), row[1]) for row, values in zip(rows, recent, strict=True)}


def workloads(connection: Connection) -> tuple[str, ...]:
    """Return the workloads that there are, the one with the most cases first."""
    return tuple(connection.execute(WORKLOADS).scalars())


def fastest_cases(connection: Connection, workload: str, most: int) -> tuple[CaseRow, ...]:
    """Return the cases of a workload, the fastest of a device first."""
    return CASES.rows(connection.execute(FASTEST, {"workload": workload, "most": most}))


@functools.cache
def _leaderboard_select(*filters: str) -> Query:
    place = func.row_number().over(
        partition_by=(CaseTable.workload, CaseTable.device, CaseTable.unit),
        order_by=(CaseTable.last_throughput.desc(), CaseTable.id),
    )
    ranked = select(CaseTable.id, place.label("place"))
    fastest = ranked.where(*(getattr(CaseTable, name) == bindparam(name) for name in filters)).subquery()
    return (
        CASE_SELECT.join(fastest, fastest.c.id == CaseTable.id)
        .where(fastest.c.place <= MOST)
        .order_by(CaseTable.workload, CaseTable.device, CaseTable.unit, fastest.c.place)
    )


def leaderboard(
    connection: Connection, workload: str | None = None, device: str | None = None, most: int = 10
) -> tuple[Board, ...]:
    """Return a board for every workload and device, the `most` fastest cases of each."""
    filters = {"workload": workload, "device": device}
    given = {name: value for name, value in filters.items() if value is not None}
    boards: dict[tuple[str, str, str], list[CaseRow]] = {}
    for row in CASES.rows(connection.execute(_leaderboard_select(*given), {**given, "most": most})):
        boards.setdefault((row.workload, row.device, row.unit), []).append(row)
    return tuple(Board(*group, cases=tuple(own)) for group, own in boards.items())


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
