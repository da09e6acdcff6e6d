"""Search over cases, runs and machines."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, func
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.server.database.models import Case, Machine, Run
from trainmark.server.database.queries.rows import SearchResult
from trainmark.server.database.queries.selects import (
    case_row,
    case_select,
    machine_row,
    machine_select,
    run_row,
    run_select,
)

MOST_WORDS, LONGEST = 8, 200
ESCAPE = "\\"


def search(connection: Connection, text: str, most: int = 20) -> SearchResult:
    """Return what contains every word of the text, in any case of letters."""
    words = text[:LONGEST].lower().replace("\0", " ").split()[:MOST_WORDS]
    if not words:
        return SearchResult((), (), ())
    of_cases = case_select().where(_all(words, Case.label, Case.device, Machine.name))
    of_runs = run_select().where(*(Run.words.like(_pattern(word), escape=ESCAPE) for word in words))
    of_machines = machine_select().where(_all(words, Machine.name, Machine.device))
    return SearchResult(
        tuple(map(case_row, connection.execute(of_cases.order_by(Case.last_time.desc()).limit(most)))),
        tuple(map(run_row, connection.execute(of_runs.order_by(Run.created.desc()).limit(most)))),
        tuple(
            map(machine_row, connection.execute(of_machines.order_by(Machine.last_seen.desc()).limit(most)))
        ),
    )


def _all(
    words: list[str], *columns: InstrumentedAttribute[str] | InstrumentedAttribute[str | None]
) -> ColumnElement[bool]:
    # One text a row: lowered once rather than column by column.
    text: ColumnElement[str] = func.lower(func.coalesce(columns[0], ""))
    for column in columns[1:]:
        text = text + " " + func.lower(func.coalesce(column, ""))
    return and_(*(text.like(_pattern(word), escape=ESCAPE) for word in words))


def _pattern(word: str) -> str:
    for special in (ESCAPE, "%", "_"):
        word = word.replace(special, ESCAPE + special)
    return f"%{word}%"
