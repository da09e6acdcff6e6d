"""What changed lately and how much there is; search over cases, runs and machines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.server.database.models import (
    AuditTable,
    CaseTable,
    ChangeTable,
    MachineTable,
    ResultTable,
    RunTable,
)
from trainmark.server.database.queries.rows import AuditRow, CaseRow, ChangeRow, Overview, SearchResult
from trainmark.server.database.queries.selects import (
    MOST,
    OFFSET,
    case_rows,
    case_select,
    change_rows,
    change_select,
    machine_row,
    machine_select,
    run_row,
    run_select,
)

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query


NEWEST_RUNS = 12


@functools.cache
def _newest_select() -> Query:
    return run_select().order_by(RunTable.created.desc(), RunTable.id.desc()).limit(NEWEST_RUNS)


@functools.cache
def _case_totals_select() -> Query:
    return select(
        func.count(),
        func.coalesce(func.sum(CaseTable.results), 0),
        func.coalesce(func.max(CaseTable.results), 0),
    ).select_from(CaseTable)


@functools.cache
def _machine_totals_select() -> Query:
    return select(func.count(), func.coalesce(func.sum(MachineTable.runs), 0)).select_from(MachineTable)


@functools.cache
def _changes_select() -> Query:
    newest = (ChangeTable.time.desc(), ChangeTable.id.desc())
    return change_select().where(ChangeTable.time >= bindparam("since")).order_by(*newest).limit(MOST)


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
    chosen = (
        change_select()
        .where(ChangeTable.result_id.in_(result_ids))
        .order_by(ChangeTable.case_id, ChangeTable.time)
    )
    return change_rows(connection.execute(chosen).all())


def doubts_of_results(connection: Connection, result_ids: Sequence[int]) -> dict[int, list[str]]:
    rows = connection.execute(
        select(ResultTable.id, ResultTable.doubts).where(ResultTable.id.in_(result_ids))
    )
    return {row.id: row.doubts for row in rows}


def audit_log(connection: Connection, most: int = 200, before: float | None = None) -> tuple[AuditRow, ...]:
    """Return the newest entries of the audit log."""
    chosen = select(
        AuditTable.time,
        AuditTable.token,
        AuditTable.address,
        AuditTable.action,
        AuditTable.subject,
        AuditTable.detail,
    ).order_by(AuditTable.id.desc())
    if before is not None:
        chosen = chosen.where(AuditTable.time < before)
    return tuple(AuditRow(*row) for row in connection.execute(chosen.limit(most)))


MOST_WORDS, LONGEST_SEARCH = 8, 200
ESCAPE = "\\"


@functools.cache
def _cases_select(words: int) -> Query:
    text = _joined(CaseTable.label, CaseTable.workload, CaseTable.device, MachineTable.name)
    chosen = case_select().where(_all(words, text)).order_by(CaseTable.last_time.desc(), CaseTable.id.desc())
    return chosen.limit(MOST).offset(OFFSET)


@functools.cache
def _runs_select(words: int) -> Query:
    return run_select().where(_all(words, RunTable.words)).order_by(RunTable.created.desc()).limit(MOST)


@functools.cache
def _machines_select(words: int) -> Query:
    text = _joined(MachineTable.name, MachineTable.device)
    return machine_select().where(_all(words, text)).order_by(MachineTable.last_seen.desc()).limit(MOST)


def search(connection: Connection, text: str, most: int = 20) -> SearchResult:
    """Return what contains every word of the text, in any case of letters."""
    words = text[:LONGEST_SEARCH].replace("\0", " ").split()
    if not words:
        return SearchResult((), (), ())
    count, given = _bound(words, most)
    return SearchResult(
        cases_with(connection, words, most),
        tuple(map(run_row, connection.execute(_runs_select(count), given).all())),
        tuple(map(machine_row, connection.execute(_machines_select(count), given).all())),
    )


def cases_with(
    connection: Connection, words: Sequence[str], most: int, offset: int = 0
) -> tuple[CaseRow, ...]:
    """Return the cases that contain every word, those measured last first."""
    count, given = _bound(words, most)
    return case_rows(connection.execute(_cases_select(count), {**given, "offset": offset}).all())


def _bound(words: Sequence[str], most: int) -> tuple[int, dict[str, str | int]]:
    """Return how many words a statement has, and its parameters."""
    patterns = {f"word{place}": _pattern(word.lower()) for place, word in enumerate(words[:MOST_WORDS])}
    return len(patterns), {**patterns, "most": most}


def _joined(*columns: InstrumentedAttribute[str]) -> ColumnElement[str]:
    # One text a row: lowered once rather than column by column.
    text = functools.reduce(lambda joined, column: joined + " " + column, columns[1:], columns[0] + "")
    return func.lower(text)


def _all(words: int, text: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return and_(True, *(text.like(bindparam(f"word{place}"), escape=ESCAPE) for place in range(words)))


def _pattern(word: str) -> str:
    for special in (ESCAPE, "%", "_"):
        word = word.replace(special, ESCAPE + special)
    return f"%{word}%"
