"""What the questions to the database answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trainmark.measure.history.series import RunPoint


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
