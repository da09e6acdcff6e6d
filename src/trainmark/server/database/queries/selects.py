"""The columns of each kind of row, and rows made of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from trainmark.server.database.models import Case, Change, Machine, Pack, Result, Run
from trainmark.server.database.queries.rows import CaseRow, ChangeRow, MachineRow, ResultRow, RunRow

if TYPE_CHECKING:
    from typing_extensions import Unpack

    Query = Select[Unpack[tuple[Any, ...]]]


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
        Case.key,
        Case.results,
        Case.first_time,
        Case.last_time,
        Case.last_throughput,
        Case.last_low,
        Case.last_high,
        Case.last_n,
        Case.last_run_id,
        Case.last_version,
        Case.last_doubts,
        Case.last_mfu,
        Case.conformance,
        Case.best_throughput,
        Case.changes,
        Case.last_change_time,
        Case.last_change_ratio,
        Case.recent,
    ).join(Machine, Machine.id == Case.machine_id)


def case_row(row: Iterable[Any]) -> CaseRow:
    values = list(row)
    values[20], values[27] = tuple(values[20]), tuple(values[27])
    return CaseRow(*values)


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
            Change.facts,
        )
        .join(Case, Case.id == Change.case_id)
        .join(Machine, Machine.id == Case.machine_id)
        .join(Result, Result.id == Change.result_id)
        .join(Run, Run.id == Result.run_id)
    )


def change_row(row: Iterable[Any]) -> ChangeRow:
    values = list(row)
    values[14] = tuple((name, before, after) for name, before, after in values[14])
    return ChangeRow(*values)


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
            Result.values,
            Result.facts_id,
            Result.own_facts,
            Result.doubts,
            Result.conformance,
            Result.step_seconds,
            Result.memory_bytes,
            Result.mfu,
            Result.samples_per_joule,
            Result.efficiency,
        )
        .join(Case, Case.id == Result.case_id)
        .join(Run, Run.id == Result.run_id)
    )


def result_row(row: Iterable[Any], facts: Mapping[int, Mapping[str, Any]]) -> ResultRow:
    """Return a row of `result_select`; `facts` are the shared ones by their number."""
    values = list(row)
    facts_id, own = values[13], values.pop(14)
    values[12], values[13], values[14] = tuple(values[12]), {**facts[facts_id], **own}, tuple(values[14])
    return ResultRow(*values)
