"""Search over cases, runs and machines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.server.database.models import Case, Machine, Run
from trainmark.server.database.queries.rows import CaseRow, SearchResult
from trainmark.server.database.queries.selects import (
    MOST,
    OFFSET,
    case_rows,
    case_select,
    machine_row,
    machine_select,
    run_row,
    run_select,
)

if TYPE_CHECKING:
    from trainmark.server.database.queries.selects import Query

MOST_WORDS, LONGEST = 8, 200
ESCAPE = "\\"


@functools.cache
def _cases_select(words: int) -> Query:
    text = _joined(Case.label, Case.workload, Case.device, Machine.name)
    chosen = case_select().where(_all(words, text)).order_by(Case.last_time.desc(), Case.id.desc())
    return chosen.limit(MOST).offset(OFFSET)


@functools.cache
def _runs_select(words: int) -> Query:
    return run_select().where(_all(words, Run.words)).order_by(Run.created.desc()).limit(MOST)


@functools.cache
def _machines_select(words: int) -> Query:
    text = _joined(Machine.name, Machine.device)
    return machine_select().where(_all(words, text)).order_by(Machine.last_seen.desc()).limit(MOST)


def search(connection: Connection, text: str, most: int = 20) -> SearchResult:
    """Return what contains every word of the text, in any case of letters."""
    words = text[:LONGEST].replace("\0", " ").split()
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
