"""The columns of each kind of row, rows made of them, and the recorded facts that many results share."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Connection, Integer, Select, Text, bindparam, cast, select
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.server.database.models import (
    CaseTable,
    ChangeTable,
    FactSetTable,
    MachineTable,
    PackTable,
    ResultTable,
    RunTable,
)
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
        MachineTable.id,
        MachineTable.digest,
        MachineTable.name,
        MachineTable.device,
        MachineTable.facts,
        MachineTable.first_seen,
        MachineTable.last_seen,
        MachineTable.runs,
    )


def machine_row(row: Iterable[Any]) -> MachineRow:
    return MachineRow(*row)


@functools.cache
def run_select() -> Query:
    return (
        select(
            RunTable.id,
            RunTable.uuid,
            RunTable.name,
            RunTable.suite,
            RunTable.about,
            RunTable.created,
            RunTable.pushed,
            RunTable.version,
            RunTable.command,
            RunTable.commit,
            RunTable.machine_id,
            MachineTable.name,
            MachineTable.device,
            RunTable.ok,
            RunTable.failed,
            PackTable.sha256,
            PackTable.bytes,
            PackTable.token,
            PackTable.signer,
        )
        .join(MachineTable, MachineTable.id == RunTable.machine_id)
        .join(PackTable, PackTable.id == RunTable.pack_id)
    )


def run_row(row: Iterable[Any]) -> RunRow:
    return RunRow(*row)


@functools.cache
def case_select() -> Query:
    return select(
        CaseTable.id,
        CaseTable.machine_id,
        MachineTable.name,
        CaseTable.label,
        CaseTable.workload,
        CaseTable.framework,
        CaseTable.precision,
        CaseTable.device,
        CaseTable.devices,
        CaseTable.unit,
        CaseTable.results,
        CaseTable.first_time,
        CaseTable.last_time,
        CaseTable.last_throughput,
        CaseTable.last_low,
        CaseTable.last_high,
        CaseTable.last_n,
        CaseTable.last_run_id,
        CaseTable.last_version,
        CaseTable.last_mfu,
        CaseTable.conformance,
        CaseTable.best_throughput,
        CaseTable.changes,
        CaseTable.last_change_time,
        CaseTable.last_change_ratio,
        json_text(CaseTable.key),
        json_text(CaseTable.last_doubts),
        json_text(CaseTable.recent),
    ).join(MachineTable, MachineTable.id == CaseTable.machine_id)


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
            ChangeTable.case_id,
            CaseTable.label,
            CaseTable.machine_id,
            MachineTable.name,
            CaseTable.device,
            ChangeTable.result_id,
            RunTable.uuid,
            RunTable.name,
            ChangeTable.time,
            ChangeTable.ratio,
            ChangeTable.low,
            ChangeTable.high,
            ChangeTable.probability,
            ChangeTable.confirmed_by,
            json_text(ChangeTable.facts),
        )
        .join(CaseTable, CaseTable.id == ChangeTable.case_id)
        .join(MachineTable, MachineTable.id == CaseTable.machine_id)
        .join(ResultTable, ResultTable.id == ChangeTable.result_id)
        .join(RunTable, RunTable.id == ResultTable.run_id)
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
            ResultTable.id,
            ResultTable.case_id,
            CaseTable.label,
            ResultTable.name,
            RunTable.uuid,
            CaseTable.unit,
            ResultTable.time,
            ResultTable.throughput,
            ResultTable.low,
            ResultTable.high,
            ResultTable.n,
            ResultTable.failed,
            ResultTable.conformance,
            ResultTable.step_seconds,
            ResultTable.memory_bytes,
            ResultTable.mfu,
            ResultTable.samples_per_joule,
            ResultTable.efficiency,
            ResultTable.facts_id,
            json_text(ResultTable.values),
            json_text(ResultTable.own_facts),
            json_text(ResultTable.doubts),
            json_text(ResultTable.minor_doubts),
        )
        .join(CaseTable, CaseTable.id == ResultTable.case_id)
        .join(RunTable, RunTable.id == ResultTable.run_id)
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


@functools.cache
def _facts_select() -> Select[int, dict[str, Any]]:
    return select(FactSetTable.id, FactSetTable.facts).where(
        FactSetTable.id.in_(bindparam("ids", expanding=True))
    )


def facts_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(_facts_select(), {"ids": sorted(set(ids))})
    return {row.id: row.facts for row in rows}
