"""What changed lately and how much there is; search over cases, runs and machines; the audit log."""

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
from trainmark.server.database.rows import (
    AUDIT,
    CASE_SELECT,
    CASES,
    CHANGE_SELECT,
    CHANGES,
    MACHINES,
    MOST,
    OFFSET,
    RUN_SELECT,
    RUNS,
    AuditRow,
    CaseRow,
    ChangeRow,
    Overview,
    SearchResult,
)
from trainmark.server.database.run_queries import runs

if TYPE_CHECKING:
    from trainmark.server.database.rows import Query


NEWEST_RUNS = 12
CASE_TOTALS = select(
    func.count(), func.coalesce(func.sum(CaseTable.results), 0), func.coalesce(func.max(CaseTable.results), 0)
).select_from(CaseTable)
MACHINE_TOTALS = select(func.count(), func.coalesce(func.sum(MachineTable.runs), 0)).select_from(MachineTable)
CHANGES_SINCE = (
    CHANGE_SELECT.where(ChangeTable.time >= bindparam("since"))
    .order_by(ChangeTable.time.desc(), ChangeTable.id.desc())
    .limit(MOST)
)


def overview(connection: Connection, since: float, most: int = 50) -> Overview:
    """Return the changes since a time, the newest runs and the totals."""
    cases, results, longest = connection.execute(CASE_TOTALS).one()
    machines, run_count = connection.execute(MACHINE_TOTALS).one()
    return Overview(
        changes=changes_since(connection, since, most),
        newest=runs(connection, most=NEWEST_RUNS),
        runs=int(run_count),
        machines=machines,
        cases=cases,
        results=int(results),
        longest=longest,
    )


def changes_since(connection: Connection, since: float, most: int = 50) -> tuple[ChangeRow, ...]:
    return CHANGES.rows(connection.execute(CHANGES_SINCE, {"since": since, "most": most}))


def changes_of_results(connection: Connection, result_ids: Sequence[int]) -> tuple[ChangeRow, ...]:
    """Return the changes that begin at these results."""
    chosen = CHANGE_SELECT.where(ChangeTable.result_id.in_(result_ids))
    return CHANGES.rows(connection.execute(chosen.order_by(ChangeTable.case_id, ChangeTable.time)))


def doubts_of_results(connection: Connection, result_ids: Sequence[int]) -> dict[int, list[str]]:
    rows = connection.execute(
        select(ResultTable.id, ResultTable.doubts).where(ResultTable.id.in_(result_ids))
    )
    return {row.id: row.doubts for row in rows}


def audit_log(connection: Connection, most: int = 200, before: float | None = None) -> tuple[AuditRow, ...]:
    """Return the newest entries of the audit log."""
    chosen = AUDIT.select.order_by(AuditTable.id.desc())
    if before is not None:
        chosen = chosen.where(AuditTable.time < before)
    return AUDIT.rows(connection.execute(chosen.limit(most)))


MOST_WORDS, LONGEST_SEARCH = 8, 200
ESCAPE = "\\"


@functools.cache
def _cases_select(words: int) -> Query:
    text = _joined(CaseTable.label, CaseTable.workload, CaseTable.device, MachineTable.name)
    chosen = CASE_SELECT.where(_all(words, text)).order_by(CaseTable.last_time.desc(), CaseTable.id.desc())
    return chosen.limit(MOST).offset(OFFSET)


@functools.cache
def _runs_select(words: int) -> Query:
    return RUN_SELECT.where(_all(words, RunTable.words)).order_by(RunTable.created.desc()).limit(MOST)


@functools.cache
def _machines_select(words: int) -> Query:
    text = _joined(MachineTable.name, MachineTable.device)
    return MACHINES.select.where(_all(words, text)).order_by(MachineTable.last_seen.desc()).limit(MOST)


def search(connection: Connection, text: str, most: int = 20) -> SearchResult:
    """Return what contains every word of the text, in any case of letters."""
    words = text[:LONGEST_SEARCH].replace("\0", " ").split()
    if not words:
        return SearchResult((), (), ())
    count, given = _bound(words, most)
    return SearchResult(
        cases_with(connection, words, most),
        RUNS.rows(connection.execute(_runs_select(count), given)),
        MACHINES.rows(connection.execute(_machines_select(count), given)),
    )


def cases_with(
    connection: Connection, words: Sequence[str], most: int, offset: int = 0
) -> tuple[CaseRow, ...]:
    """Return the cases that contain every word, those measured last first."""
    count, given = _bound(words, most)
    return CASES.rows(connection.execute(_cases_select(count), {**given, "offset": offset}))


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
