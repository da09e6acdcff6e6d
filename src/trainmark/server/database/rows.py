"""What the questions to the database answer with, and the columns that each kind of row is made of."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sqlalchemy import JSON, BindParameter, Connection, Integer, Select, Text, bindparam, cast, select
from sqlalchemy.orm import InstrumentedAttribute

from trainmark.measure.history.series import RunPoint
from trainmark.server.database.models import (
    AuditTable,
    Base,
    CaseTable,
    ChangeTable,
    FactSetTable,
    MachineTable,
    PackTable,
    ResultTable,
    RunTable,
    TrialTable,
)

if TYPE_CHECKING:
    from sqlalchemy import Label
    from typing_extensions import Unpack

    Query = Select[Unpack[tuple[Any, ...]]]


MOST: BindParameter[int] = bindparam("most", type_=Integer)
OFFSET: BindParameter[int] = bindparam("offset", type_=Integer)
Row = TypeVar("Row")


def json_text(column: InstrumentedAttribute[Any]) -> Label[str]:
    """Return a JSON column as the text that is stored."""
    return cast(column, Text).label(f"{column.key}_text")


def decoded(texts: Iterable[str]) -> list[Any]:
    """Decode many JSON texts by one call."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    return values


class RowKind(Generic[Row]):
    """A dataclass whose fields are columns of a table, but for those that are `elsewhere`.

    JSON is asked for as text and decoded for all rows at once.
    """

    def __init__(self, kind: type[Row], table: type[Base], **elsewhere: InstrumentedAttribute[Any]) -> None:
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        columns = [elsewhere[name] if name in elsewhere else getattr(table, name) for name in names]
        self.kind, self._width = kind, len(columns)
        self._stored = [place for place, column in enumerate(columns) if isinstance(column.type, JSON)]
        self.select: Query = select(
            *(json_text(column) if place in self._stored else column for place, column in enumerate(columns))
        )

    def rows(self, selected: Iterable[Sequence[Any]]) -> tuple[Row, ...]:
        """Return rows of `select`, or of one with more columns behind."""
        columns: list[Sequence[Any]] = list(zip(*selected, strict=True))
        for place in self._stored if columns else ():
            columns[place] = list(map(_frozen, decoded(columns[place])))
        return tuple(itertools.starmap(self.kind, zip(*columns[: self._width], strict=True)))


def _frozen(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(map(tuple, value)) if value and isinstance(value[0], list) else tuple(value)


@dataclass(frozen=True)
class MachineRow:
    id: int
    digest: str
    name: str
    device: str
    facts: Mapping[str, Any]
    first_seen: float
    last_seen: float
    runs: int


@dataclass(frozen=True)
class RunRow:
    """`uuid` is its name in addresses; `machine` and `token` (who pushed it) are names."""

    id: int
    uuid: str
    name: str
    suite: str
    about: str
    created: float
    pushed: float
    version: str
    command: str
    commit: str | None
    machine_id: int
    machine: str
    device: str
    ok: int
    failed: int
    sha256: str
    bytes: int
    token: str
    signer: str | None


@dataclass(frozen=True)
class CaseRow:
    """A line of a history with its summary; rates are in `unit` a second."""

    id: int
    machine_id: int
    machine: str
    label: str
    workload: str
    framework: str
    precision: str
    device: str
    devices: int
    unit: str
    results: int
    first_time: float
    last_time: float
    last_throughput: float
    last_low: float | None
    last_high: float | None
    last_n: int
    last_run_id: int
    last_version: str | None
    last_mfu: float | None
    conformance: str
    best_throughput: float
    changes: int
    last_change_time: float | None
    last_change_ratio: float | None
    key: Mapping[str, Any]
    last_doubts: tuple[str, ...]
    recent: tuple[float, ...]


@dataclass(frozen=True)
class ChangeRow:
    """`facts` are those that changed with it, as (name, before, after), the best fit first."""

    case_id: int
    label: str
    machine_id: int
    machine: str
    device: str
    result_id: int
    run_uuid: str
    run: str
    time: float
    ratio: float
    low: float
    high: float
    probability: float
    confirmed_by: int
    facts: tuple[tuple[str, str, str], ...]

    @property
    def regression(self) -> bool:
        return self.ratio < 1


@dataclass(frozen=True)
class Overview:
    """`changes` since a time, the newest first; `newest` are the newest runs; the rest are totals.

    `longest` is the number of results of the case that has the most.
    """

    changes: tuple[ChangeRow, ...]
    newest: tuple[RunRow, ...]
    runs: int
    machines: int
    cases: int
    results: int
    longest: int


class SeriesPoint(NamedTuple):
    """One result of a series; `low` and `high` bound its median where its trials carry an interval.

    Its point has the doubts that weigh as much as their code, `minor_doubts` are the others.
    """

    run_uuid: str
    point: RunPoint
    low: float | None
    high: float | None
    minor_doubts: tuple[str, ...]


@dataclass(frozen=True)
class StoredSeries:
    """All results of a case as they are stored: rows of `series_select`, oldest first.

    `facts` are the shared ones by their number; `index` of a change counts in `results`.
    """

    case: CaseRow
    results: Sequence[Sequence[Any]]
    facts: Mapping[int, Mapping[str, str]]
    changes: tuple[tuple[int, ChangeRow], ...]


@dataclass(frozen=True)
class CaseSeries:
    """All results of a case, oldest first; `index` of a change counts in `points`."""

    case: CaseRow
    points: tuple[SeriesPoint, ...]
    changes: tuple[tuple[int, ChangeRow], ...]


@dataclass(frozen=True)
class ResultRow:
    id: int
    case_id: int
    label: str
    name: str
    run_uuid: str
    unit: str
    time: float
    throughput: float
    low: float | None
    high: float | None
    n: int
    failed: int
    conformance: str
    step_seconds: float | None
    memory_bytes: int | None
    mfu: float | None
    samples_per_joule: float | None
    efficiency: float | None
    values: tuple[float, ...]
    facts: Mapping[str, str]
    doubts: tuple[str, ...]
    minor_doubts: tuple[str, ...] = ()


def weighty(doubts: Sequence[str], minor: Sequence[str]) -> tuple[str, ...]:
    """Return the doubts that weigh as much as their code says."""
    return tuple(code for code in doubts if code not in minor)


@dataclass(frozen=True)
class Headline:
    """The first result of a run, how many `more` it has, and the doubts of all of them.

    `recent` are the newest medians of its case, oldest first.
    """

    case_id: int
    label: str
    unit: str
    throughput: float
    low: float | None
    high: float | None
    more: int
    doubts: tuple[str, ...]
    minor_doubts: tuple[str, ...]
    recent: tuple[float, ...]


@dataclass(frozen=True)
class TrialRow:
    """`row` is the trial as `trainmark.load` shows it."""

    uuid: str
    case: str
    repeat: int
    outcome: str
    detail: str
    started: float
    seconds: float
    throughput: float | None
    row: Mapping[str, Any]


@dataclass(frozen=True)
class ScrubbedRow:
    """What was masked in one member of a packed run; `places` are the first few of `count`."""

    member: str
    kind: str
    count: int
    places: tuple[str, ...]


@dataclass(frozen=True)
class Scrubbed:
    """`count` values were masked before packing; `notes` are the first thousand."""

    count: int
    notes: tuple[ScrubbedRow, ...]


@dataclass(frozen=True)
class RunDetail:
    """`scrubbed` is None where it is not known: the packed file of an older server cannot be read."""

    run: RunRow
    environment: Mapping[str, Any]
    scrubbed: Scrubbed | None
    results: tuple[ResultRow, ...]
    trials: tuple[TrialRow, ...]


@dataclass(frozen=True)
class Health:
    """A machine during one run: failed trials, doubts, and its median result ÷ the best of the same case."""

    run_uuid: str
    run: str
    time: float
    ok: int
    failed: int
    doubts: tuple[str, ...]
    of_best: float | None


@dataclass(frozen=True)
class MachineDetail:
    machine: MachineRow
    cases: tuple[CaseRow, ...]
    health: tuple[Health, ...]


@dataclass(frozen=True)
class Board:
    """The leaderboard of a workload on one device: the newest result of every case, the fastest first."""

    workload: str
    device: str
    unit: str
    cases: tuple[CaseRow, ...]


@dataclass(frozen=True)
class SearchResult:
    cases: tuple[CaseRow, ...]
    runs: tuple[RunRow, ...]
    machines: tuple[MachineRow, ...]


@dataclass(frozen=True)
class AuditRow:
    time: float
    token: str | None
    address: str | None
    action: str
    subject: str
    detail: str


MACHINES, TRIALS = RowKind(MachineRow, MachineTable), RowKind(TrialRow, TrialTable)
AUDIT = RowKind(AuditRow, AuditTable)
RUNS = RowKind(
    RunRow,
    RunTable,
    machine=MachineTable.name,
    device=MachineTable.device,
    sha256=PackTable.sha256,
    bytes=PackTable.bytes,
    token=PackTable.token,
    signer=PackTable.signer,
)
CASES = RowKind(CaseRow, CaseTable, machine=MachineTable.name)
CHANGES = RowKind(
    ChangeRow,
    ChangeTable,
    label=CaseTable.label,
    machine_id=CaseTable.machine_id,
    machine=MachineTable.name,
    device=CaseTable.device,
    run_uuid=RunTable.uuid,
    run=RunTable.name,
)
RESULTS = RowKind(
    ResultRow,
    ResultTable,
    label=CaseTable.label,
    run_uuid=RunTable.uuid,
    unit=CaseTable.unit,
    facts=ResultTable.own_facts,
)
RUN_SELECT = RUNS.select.join(MachineTable, MachineTable.id == RunTable.machine_id).join(
    PackTable, PackTable.id == RunTable.pack_id
)
CASE_SELECT = CASES.select.join(MachineTable, MachineTable.id == CaseTable.machine_id)
CHANGE_SELECT = (
    CHANGES.select.join(CaseTable, CaseTable.id == ChangeTable.case_id)
    .join(MachineTable, MachineTable.id == CaseTable.machine_id)
    .join(ResultTable, ResultTable.id == ChangeTable.result_id)
    .join(RunTable, RunTable.id == ResultTable.run_id)
)
RESULT_SELECT = (
    RESULTS.select.add_columns(ResultTable.facts_id)
    .join(CaseTable, CaseTable.id == ResultTable.case_id)
    .join(RunTable, RunTable.id == ResultTable.run_id)
)
FACTS_SELECT = select(FactSetTable.id, FactSetTable.facts).where(
    FactSetTable.id.in_(bindparam("ids", expanding=True))
)


def result_rows(connection: Connection, selected: Sequence[Sequence[Any]]) -> tuple[ResultRow, ...]:
    """Return rows of `RESULT_SELECT`, each with its own facts and those that it shares with others."""
    shared = facts_by_id(connection, {row[-1] for row in selected})
    return tuple(
        replace(result, facts={**shared[row[-1]], **result.facts})
        for result, row in zip(RESULTS.rows(selected), selected, strict=True)
    )


def facts_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(FACTS_SELECT, {"ids": sorted(set(ids))})
    return {row.id: row.facts for row in rows}
