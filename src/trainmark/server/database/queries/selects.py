"""The columns of each kind of row, and rows made of them.

Statements are built once, with bind parameters: building one takes several times as long as running it.
JSON columns come last and as text: those of all rows are decoded in one go, or sent as they are stored.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Integer, Select, Text, bindparam, cast, select
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.server.database.models import Case, Change, Machine, Pack, Result, Run
from trainmark.server.database.queries.rows import CaseRow, ChangeRow, MachineRow, ResultRow, RunRow

if TYPE_CHECKING:
    from sqlalchemy import Label
    from typing_extensions import Unpack

    Query = Select[Unpack[tuple[Any, ...]]]

MOST: BindParameter[int] = bindparam("most", type_=Integer)
OFFSET: BindParameter[int] = bindparam("offset", type_=Integer)


def json_text(column: InstrumentedAttribute[Any]) -> Label[str]:
    """Return a JSON column as the text that is stored."""
    return cast(column, Text).label(f"{column.key}_text")


def decoded(texts: Iterable[str]) -> list[Any]:
    """Decode many JSON texts by one call."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    return values


@functools.cache
def machine_select() -> Query:
    return select(
        Machine.id,
        Machine.digest,
        Machine.name,
        Machine.device,
        Machine.facts,
        Machine.first_seen,
        Machine.last_seen,
        Machine.runs,
    )


def machine_row(row: Iterable[Any]) -> MachineRow:
    return MachineRow(*row)


@functools.cache
def run_select() -> Query:
    return (
        select(
            Run.id,
            Run.uuid,
            Run.name,
            Run.suite,
            Run.about,
            Run.created,
            Run.pushed,
            Run.version,
            Run.command,
            Run.commit,
            Run.machine_id,
            Machine.name,
            Machine.device,
            Run.ok,
            Run.failed,
            Pack.sha256,
            Pack.bytes,
            Pack.token,
            Pack.signer,
        )
        .join(Machine, Machine.id == Run.machine_id)
        .join(Pack, Pack.id == Run.pack_id)
    )


def run_row(row: Iterable[Any]) -> RunRow:
    return RunRow(*row)


@functools.cache
def case_select() -> Query:
    return select(
        Case.id,
        Case.machine_id,
        Machine.name,
        Case.label,
        Case.workload,
        Case.framework,
        Case.precision,
        Case.device,
        Case.devices,
        Case.unit,
        Case.results,
        Case.first_time,
        Case.last_time,
        Case.last_throughput,
        Case.last_low,
        Case.last_high,
        Case.last_n,
        Case.last_run_id,
        Case.last_version,
        Case.last_mfu,
        Case.conformance,
        Case.best_throughput,
        Case.changes,
        Case.last_change_time,
        Case.last_change_ratio,
        json_text(Case.key),
        json_text(Case.last_doubts),
        json_text(Case.recent),
    ).join(Machine, Machine.id == Case.machine_id)


def case_rows(rows: Sequence[Sequence[Any]]) -> tuple[CaseRow, ...]:
    stored = iter(decoded(text for row in rows for text in row[-3:]))
    return tuple(
        CaseRow(*[*row[:-3], key, tuple(doubts), tuple(recent)])
        for row, key, doubts, recent in zip(rows, stored, stored, stored, strict=True)
    )


@functools.cache
def change_select() -> Query:
    return (
        select(
            Change.case_id,
            Case.label,
            Case.machine_id,
            Machine.name,
            Case.device,
            Change.result_id,
            Run.uuid,
            Run.name,
            Change.time,
            Change.ratio,
            Change.low,
            Change.high,
            Change.probability,
            Change.confirmed_by,
            json_text(Change.facts),
        )
        .join(Case, Case.id == Change.case_id)
        .join(Machine, Machine.id == Case.machine_id)
        .join(Result, Result.id == Change.result_id)
        .join(Run, Run.id == Result.run_id)
    )


def change_rows(rows: Sequence[Sequence[Any]]) -> tuple[ChangeRow, ...]:
    stored = decoded(row[-1] for row in rows)
    return tuple(
        ChangeRow(*[*row[:-1], tuple((name, before, after) for name, before, after in facts)])
        for row, facts in zip(rows, stored, strict=True)
    )


@functools.cache
def result_select() -> Query:
    return (
        select(
            Result.id,
            Result.case_id,
            Case.label,
            Result.name,
            Run.uuid,
            Case.unit,
            Result.time,
            Result.throughput,
            Result.low,
            Result.high,
            Result.n,
            Result.failed,
            Result.conformance,
            Result.step_seconds,
            Result.memory_bytes,
            Result.mfu,
            Result.samples_per_joule,
            Result.efficiency,
            Result.facts_id,
            json_text(Result.values),
            json_text(Result.own_facts),
            json_text(Result.doubts),
            json_text(Result.minor_doubts),
        )
        .join(Case, Case.id == Result.case_id)
        .join(Run, Run.id == Result.run_id)
    )


def result_rows(
    rows: Sequence[Sequence[Any]], facts: Mapping[int, Mapping[str, Any]]
) -> tuple[ResultRow, ...]:
    """Return rows of `result_select`; `facts` are the shared ones by their number."""
    stored = iter(decoded(text for row in rows for text in row[-4:]))
    return tuple(
        ResultRow(*[*row[:-5], tuple(values), {**facts[row[-5]], **own}, tuple(doubts), tuple(minor)])
        for row, values, own, doubts, minor in zip(rows, stored, stored, stored, stored, strict=True)
    )
