"""Cases and their histories; machines and their health over time."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.measure.history.series import ORDER_FACTS, RunPoint
from trainmark.server.database.models import CaseTable, ChangeTable, MachineTable, ResultTable, RunTable
from trainmark.server.database.queries.rows import (
    Board,
    CaseRow,
    CaseSeries,
    Health,
    MachineDetail,
    MachineRow,
    SeriesPoint,
    StoredSeries,
    weighty,
)
from trainmark.server.database.queries.selects import (
    MOST,
    OFFSET,
    case_rows,
    case_select,
    change_rows,
    change_select,
    decoded,
    facts_by_id,
    json_text,
    machine_row,
    machine_select,
)

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query


MOST_POINTS = 2000


@functools.cache
def _cases_select(*filters: str) -> Query:
    # The page is chosen by the index alone: wide rows are read only where they are shown.
    newest = (CaseTable.last_time.desc(), CaseTable.id.desc())
    page = select(CaseTable.id).where(*(getattr(CaseTable, name) == bindparam(name) for name in filters))
    chosen = page.order_by(*newest).limit(MOST).offset(OFFSET)
    return case_select().where(CaseTable.id.in_(chosen)).order_by(*newest)


@functools.cache
def _case_select() -> Query:
    return case_select().where(CaseTable.id == bindparam("case_id"))


@functools.cache
def series_select() -> Query:
    return (
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


@functools.cache
def _changes_select() -> Query:
    return change_select().where(ChangeTable.case_id == bindparam("case_id")).order_by(ChangeTable.time)


def case_records(
    connection: Connection,
    workload: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    machine_id: int | None = None,
    most: int = 100,
    offset: int = 0,
) -> Sequence[Sequence[Any]]:
    """Return cases that match as rows of `case_select`, those measured last first."""
    filters = {"workload": workload, "framework": framework, "device": device, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    return connection.execute(_cases_select(*given), {**given, "most": most, "offset": offset}).all()


def cases_of_machine(connection: Connection, machine_id: int, most: int = 100) -> tuple[CaseRow, ...]:
    return case_rows(case_records(connection, machine_id=machine_id, most=most))


def case(connection: Connection, case_id: int) -> CaseRow | None:
    return next(iter(case_rows(connection.execute(_case_select(), {"case_id": case_id}).all())), None)


def stored_series(connection: Connection, case_id: int, most: int = MOST_POINTS) -> StoredSeries | None:
    """Return the newest results of a case, oldest first, with the changes among them."""
    line = case(connection, case_id)
    if line is None:
        return None
    results = connection.execute(series_select(), {"case_id": case_id, "most": most}).all()[::-1]
    index = {row[0]: number for number, row in enumerate(results)}
    changes = change_rows(connection.execute(_changes_select(), {"case_id": case_id}).all())
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


@functools.cache
def _leaderboard_select(*filters: str) -> Query:
    place = func.row_number().over(
        partition_by=(CaseTable.workload, CaseTable.device, CaseTable.unit),
        order_by=(CaseTable.last_throughput.desc(), CaseTable.id),
    )
    ranked = select(CaseTable.id, place.label("place"))
    fastest = ranked.where(*(getattr(CaseTable, name) == bindparam(name) for name in filters)).subquery()
    return (
        case_select()
        .join(fastest, fastest.c.id == CaseTable.id)
        .where(fastest.c.place <= MOST)
        .order_by(CaseTable.workload, CaseTable.device, CaseTable.unit, fastest.c.place)
    )


def leaderboard(
    connection: Connection, workload: str | None = None, device: str | None = None, most: int = 10
) -> tuple[Board, ...]:
    """Return a board for every workload and device, the `most` fastest cases of each."""
    filters = {"workload": workload, "device": device}
    given = {name: value for name, value in filters.items() if value is not None}
    rows = connection.execute(_leaderboard_select(*given), {**given, "most": most})
    boards: dict[tuple[str, str, str], list[CaseRow]] = {}
    for row in case_rows(rows.all()):
        boards.setdefault((row.workload, row.device, row.unit), []).append(row)
    return tuple(Board(*group, cases=tuple(own)) for group, own in boards.items())


@functools.cache
def _machines_select() -> Query:
    return machine_select().order_by(MachineTable.last_seen.desc(), MachineTable.id).limit(MOST)


@functools.cache
def _machine_select() -> Query:
    return machine_select().where(MachineTable.id == bindparam("machine_id"))


@functools.cache
def _newest_runs_select() -> Query:
    return (
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


@functools.cache
def _results_select() -> Query:
    return (
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
