"""What is asked of runs: lists and their headlines, one with its results and trials, trials page by page."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, func, select

from trainmark.server.database.models import CaseTable, MachineTable, ResultTable, RunTable, TrialTable
from trainmark.server.database.rows import (
    MOST,
    OFFSET,
    RESULT_SELECT,
    RUN_SELECT,
    RUNS,
    TRIALS,
    Headline,
    ResultRow,
    RunDetail,
    RunRow,
    Scrubbed,
    ScrubbedRow,
    decoded,
    json_text,
    result_rows,
    weighty,
)

if TYPE_CHECKING:
    from trainmark.server.database.rows import Query


FILTERS = {"suite": RunTable.suite, "machine_id": MachineTable.id}
NEWEST_RUNS = RUN_SELECT.order_by(RunTable.created.desc(), RunTable.id.desc())
RUN = RUN_SELECT.where(RunTable.uuid == bindparam("uuid"))
RUNS_BY_UUID = RUN_SELECT.where(RunTable.uuid.in_(bindparam("uuids", expanding=True)))
RUNS_SINCE = select(func.count()).select_from(RunTable).where(RunTable.created >= bindparam("since"))
RUN_BEFORE = (
    select(RunTable.uuid)
    .where(
        RunTable.machine_id == bindparam("machine_id"),
        RunTable.suite == bindparam("suite"),
        RunTable.created < bindparam("created"),
    )
    .order_by(RunTable.created.desc(), RunTable.id.desc())
    .limit(1)
)
ENVIRONMENT = select(RunTable.environment, RunTable.scrubbed).where(RunTable.id == bindparam("run_id"))
RESULT = RESULT_SELECT.where(ResultTable.id == bindparam("result_id"))
RESULTS_OF = RESULT_SELECT.where(ResultTable.run_id.in_(bindparam("run_ids", expanding=True))).order_by(
    ResultTable.id
)
TRIALS_OF = TRIALS.select.where(TrialTable.run_id == bindparam("run_id")).order_by(TrialTable.id)
HEADLINES = (
    select(
        ResultTable.run_id,
        CaseTable.id,
        CaseTable.label,
        CaseTable.unit,
        ResultTable.throughput,
        ResultTable.low,
        ResultTable.high,
        json_text(ResultTable.doubts),
        json_text(ResultTable.minor_doubts),
        json_text(CaseTable.recent),
    )
    .join(CaseTable, CaseTable.id == ResultTable.case_id)
    .where(ResultTable.run_id.in_(bindparam("run_ids", expanding=True)))
    .order_by(ResultTable.id)
)


@functools.cache
def _runs_select(*filters: str) -> Query:
    chosen = (FILTERS[name] == bindparam(name) for name in filters)
    return NEWEST_RUNS.where(*chosen).limit(MOST).offset(OFFSET)


def runs(
    connection: Connection,
    suite: str | None = None,
    machine_id: int | None = None,
    most: int = 50,
    offset: int = 0,
) -> tuple[RunRow, ...]:
    """Return runs that match, the newest first."""
    filters = {"suite": suite, "machine_id": machine_id}
    given = {name: value for name, value in filters.items() if value is not None}
    return RUNS.rows(connection.execute(_runs_select(*given), {**given, "most": most, "offset": offset}))


def runs_by_uuid(connection: Connection, uuids: Sequence[str]) -> tuple[RunRow, ...]:
    """Return runs in the order of their UUIDs; unknown ones are left out."""
    by_uuid = {row.uuid: row for row in RUNS.rows(connection.execute(RUNS_BY_UUID, {"uuids": uuids}))}
    return tuple(by_uuid[uuid] for uuid in uuids if uuid in by_uuid)


def runs_since(connection: Connection, since: float) -> int:
    count: int = connection.execute(RUNS_SINCE, {"since": since}).scalar_one()
    return count


def run_before(connection: Connection, run: RunRow) -> str | None:
    """Return the UUID of the run before one, on the same machine and of the same suite."""
    given = {"machine_id": run.machine_id, "suite": run.suite, "created": run.created}
    uuid: str | None = connection.execute(RUN_BEFORE, given).scalar_one_or_none()
    return uuid


def run(connection: Connection, uuid: str) -> RunDetail | None:
    rows = RUNS.rows(connection.execute(RUN, {"uuid": uuid}))
    if not rows:
        return None
    line = rows[0]
    recorded = connection.execute(ENVIRONMENT, {"run_id": line.id}).one()
    return RunDetail(
        line,
        recorded.environment,
        _scrubbed(recorded.scrubbed),
        results(connection, [line.id]),
        TRIALS.rows(connection.execute(TRIALS_OF, {"run_id": line.id})),
    )


def _scrubbed(stored: Mapping[str, Any] | None) -> Scrubbed | None:
    if stored is None:
        return None
    notes = (ScrubbedRow(**{**note, "places": tuple(note["places"])}) for note in stored["notes"])
    return Scrubbed(stored["count"], tuple(notes))


def results(connection: Connection, run_ids: Collection[int]) -> tuple[ResultRow, ...]:
    return result_rows(connection, connection.execute(RESULTS_OF, {"run_ids": run_ids}).all())


def result(connection: Connection, result_id: int) -> ResultRow | None:
    selected = connection.execute(RESULT, {"result_id": result_id}).all()
    return next(iter(result_rows(connection, selected)), None)


def headlines(connection: Connection, runs: Sequence[RunRow]) -> dict[int, Headline]:
    """Return what a list says of each run that has a result, by the run's number."""
    if not runs:
        return {}
    rows = connection.execute(HEADLINES, {"run_ids": [run.id for run in runs]}).all()
    grouped: dict[int, list[Sequence[Any]]] = {}
    for row in rows:
        grouped.setdefault(row[0], []).append(row)
    return {run_id: _headline(own) for run_id, own in grouped.items()}


def _headline(rows: Sequence[Sequence[Any]]) -> Headline:
    stored = iter(decoded(text for row in rows for text in row[-3:-1]))
    pairs = list(zip(stored, stored, strict=True))
    doubts = dict.fromkeys(code for codes, _ in pairs for code in codes)
    grave = {code for codes, minor in pairs for code in weighty(codes, minor)}
    case_id, label, unit, throughput, low, high = rows[0][1:-3]
    return Headline(
        case_id=case_id,
        label=label,
        unit=unit,
        throughput=throughput,
        low=low,
        high=high,
        more=len(rows) - 1,
        doubts=tuple(doubts),
        minor_doubts=tuple(code for code in doubts if code not in grave),
        recent=tuple(json.loads(rows[0][-1])),
    )


@dataclass(frozen=True)
class TrialPage:
    """`next` is what to ask `after` for the following page, None at the end."""

    trials: tuple[Mapping[str, Any], ...]
    next: int | None


def trial_rows(connection: Connection, run_uuid: str | None, after: int, most: int) -> TrialPage | None:
    """Return rows as `store.overview.trial_rows` has them; None where there is no such run."""
    chosen = select(TrialTable.id, TrialTable.row).where(TrialTable.id > after)
    if run_uuid is not None:
        run_id = connection.execute(select(RunTable.id).where(RunTable.uuid == run_uuid)).scalar_one_or_none()
        if run_id is None:
            return None
        chosen = chosen.where(TrialTable.run_id == run_id)
    rows = connection.execute(chosen.order_by(TrialTable.id).limit(most)).all()
    return TrialPage(tuple(row.row for row in rows), rows[-1].id if len(rows) == most else None)
