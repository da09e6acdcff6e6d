"""Storing the rows of a run in one transaction, and what a case's row says of its history."""

from __future__ import annotations

import hashlib
import json
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update

from trainmark.measure.history.changes import changes
from trainmark.measure.history.facts import changed_facts
from trainmark.measure.history.series import RunPoint
from trainmark.server.access import tokens
from trainmark.server.access.tokens import Identity, Role
from trainmark.server.database.models import (
    LONG,
    CaseTable,
    ChangeTable,
    FactSetTable,
    MachineTable,
    PackTable,
    ResultTable,
    RunTable,
    TrialTable,
)
from trainmark.server.database.rows import facts_by_id
from trainmark.server.ingest.check import (
    CONFLICT,
    FORBIDDEN,
    OWN_FACTS,
    CheckedResult,
    CheckedRun,
    IngestError,
)

RECENT = 30
MOST_FACTS = 8
# Older results keep the changes that were seen among them.
MOST_ANALYSED = 500
MOST_MOVED = 3


def refresh_case(connection: Connection, case_id: int) -> int | None:
    """Bring the summary and the changes of a case up to date; a case without results goes.

    Returns the result at which the newest change begins, where it was not known.
    """
    columns = (
        ResultTable.id,
        ResultTable.run_id,
        ResultTable.time,
        ResultTable.throughput,
        ResultTable.low,
        ResultTable.high,
        ResultTable.n,
        ResultTable.values.label("trial_values"),
        ResultTable.facts_id,
        ResultTable.own_facts,
        ResultTable.doubts,
        ResultTable.mfu,
        ResultTable.conformance,
    )
    rows = connection.execute(
        select(*columns).where(ResultTable.case_id == case_id).order_by(ResultTable.time, ResultTable.id)
    ).all()
    if not rows:
        connection.execute(delete(ChangeTable).where(ChangeTable.case_id == case_id))
        connection.execute(delete(CaseTable).where(CaseTable.id == case_id))
        return None
    shared = facts_by_id(connection, {row.facts_id for row in rows})
    last = rows[-1]
    summary: dict[str, Any] = {
        "results": len(rows),
        "first_time": rows[0].time,
        "last_time": last.time,
        "last_throughput": last.throughput,
        "last_low": last.low,
        "last_high": last.high,
        "last_n": last.n,
        "last_run_id": last.run_id,
        "last_version": {**shared[last.facts_id], **last.own_facts}.get("framework_version"),
        "last_doubts": last.doubts,
        "last_mfu": last.mfu,
        "conformance": last.conformance,
        "best_throughput": max(row.throughput for row in rows),
        "recent": [row.throughput for row in rows[-RECENT:]],
    }
    analysed = rows[-MOST_ANALYSED:]
    points = [
        RunPoint(str(row.id), row.time, tuple(row.trial_values), {**shared[row.facts_id], **row.own_facts})
        for row in analysed
    ]
    known = _changes(connection, case_id)
    connection.execute(
        delete(ChangeTable).where(ChangeTable.case_id == case_id, ChangeTable.time >= analysed[0].time)
    )
    if changed := change_rows(case_id, [row.id for row in analysed], points):
        connection.execute(insert(ChangeTable), changed)
    stored = _changes(connection, case_id)
    newest = stored[-1] if stored else None
    summary |= {
        "changes": len(stored),
        "last_change_time": newest[0] if newest else None,
        "last_change_ratio": newest[1] if newest else None,
    }
    connection.execute(update(CaseTable).where(CaseTable.id == case_id).values(summary))
    if not changed or _is_known(changed[-1], known, [row.time for row in rows]):
        return None
    begin: int = changed[-1]["result_id"]
    return begin


def _changes(connection: Connection, case_id: int) -> list[tuple[float, float]]:
    chosen = select(ChangeTable.time, ChangeTable.ratio).where(ChangeTable.case_id == case_id)
    return [(row.time, row.ratio) for row in connection.execute(chosen.order_by(ChangeTable.time))]


def _is_known(change: dict[str, Any], known: Iterable[tuple[float, float]], times: Sequence[float]) -> bool:
    """Whether it was found before: another result may move its beginning by a few places."""
    place = bisect_left(times, change["time"])
    return any(
        (change["ratio"] < 1) == (ratio < 1) and abs(bisect_left(times, time) - place) <= MOST_MOVED
        for time, ratio in known
    )


def change_rows(case_id: int, result_ids: list[int], points: list[RunPoint]) -> list[dict[str, Any]]:
    """Return the changes of a series as rows, each with the facts that changed with it."""
    detected = changes(points)
    places = [0, *(change.index for change in detected), len(points)]
    return [
        {
            "case_id": case_id,
            "result_id": result_ids[change.index],
            "time": points[change.index].time,
            "ratio": change.ratio,
            "low": change.low,
            "high": change.high,
            "probability": change.probability,
            "confirmed_by": change.confirmed_by,
            "facts": [
                [fact.name, fact.before or "", fact.after or ""]
                for fact in changed_facts(points, change.index, places[number], places[number + 2])[
                    :MOST_FACTS
                ]
            ],
        }
        for number, change in enumerate(detected)
    ]


# Any number, the same in every process: the lock of those who store a run.
LOCK = 7_264_916_035


@dataclass(frozen=True)
class Stored:
    """`new` is False where this very file had been stored before.

    `changed` are the results at which the newest change of a case begins that only this run made certain.
    """

    uuid: str
    sha256: str
    new: bool
    cases: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Received:
    """A packed file that has come in, and from whom."""

    sha256: str
    bytes: int
    identity: Identity
    address: str


def known(connection: Connection, received: Received) -> Stored | None:
    """Return what was stored of this very file; IngestError where the token may not push its suite."""
    chosen = select(RunTable.uuid, RunTable.suite).join(PackTable, PackTable.id == RunTable.pack_id)
    run = connection.execute(chosen.where(PackTable.sha256 == received.sha256)).one_or_none()
    if run is None:
        return None
    _require_scope(received.identity, run.suite)
    return Stored(run.uuid, received.sha256, False)


def lock_stores(connection: Connection) -> None:
    """Let one transaction at a time store runs or remove files, as SQLite does by itself.

    Two runs of one case must both see the other in its history.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def store(connection: Connection, checked: CheckedRun, received: Received) -> Stored:
    """Store a run; IngestError where it clashes with what is there. The caller commits."""
    lock_stores(connection)
    _require_scope(received.identity, checked.run["suite"])
    if before := known(connection, received):
        return before
    if connection.execute(select(PackTable.id).where(PackTable.sha256 == received.sha256)).first():
        # A newer file of the run has replaced this one.
        return Stored(checked.run["uuid"], received.sha256, False)
    now = time.time()
    touched = _replaced(connection, checked, received.identity)
    machine_id = _machine(connection, checked, now)
    pack_id = _pack(connection, checked, received, now)
    run_id = _insert(
        connection,
        RunTable,
        {
            **checked.run,
            "words": _words(checked.run),
            "pushed": now,
            "pack_id": pack_id,
            "machine_id": machine_id,
        },
    )
    results: dict[str, int] = {}
    for line in checked.lines:
        case_id = _case(connection, line, machine_id, run_id)
        touched.add(case_id)
        result_id = _result(connection, line, case_id, run_id)
        results.update(dict.fromkeys(line.trials, result_id))
    rows = [{**trial, "run_id": run_id, "result_id": results.get(trial["uuid"])} for trial in checked.trials]
    connection.execute(insert(TrialTable), rows)
    begins = [refresh_case(connection, case_id) for case_id in sorted(touched)]
    _count_runs(connection, machine_id)
    tokens.mark_used(connection, received.identity.token_id)
    tokens.record(
        connection,
        "push",
        checked.run["uuid"],
        received.identity.name,
        received.address,
        f"{received.sha256}, {received.bytes} bytes, run {checked.run['name']}",
    )
    return Stored(
        checked.run["uuid"], received.sha256, True, tuple(sorted(touched)), tuple(filter(None, begins))
    )


def _words(run: dict[str, Any]) -> str:
    """Return what a search of runs looks at."""
    return " ".join(str(run[name] or "") for name in ("name", "suite", "uuid", "commit")).lower()[:LONG]


def _require_scope(identity: Identity, suite: str) -> None:
    if identity.suites is not None and not fnmatchcase(suite, identity.suites):
        raise IngestError(
            f"token '{identity.name}' may push suites '{identity.suites}', not '{suite}'.", FORBIDDEN
        )


def _replaced(connection: Connection, checked: CheckedRun, identity: Identity) -> set[int]:
    """Remove what an earlier file of the same run brought; return the cases whose history is touched.

    A run that was resumed is pushed again with more trials. Those that are stored must be in it unchanged,
    and only whoever pushed the first may push the second.
    """
    uuid = checked.run["uuid"]
    uuids = {trial["uuid"]: trial["digest"] for trial in checked.trials}
    run = connection.execute(
        select(RunTable.id, RunTable.name, PackTable.token_id, PackTable.token)
        .join(PackTable, PackTable.id == RunTable.pack_id)
        .where(RunTable.uuid == uuid)
    ).one_or_none()
    stored = {} if run is None else _stored_trials(connection, run.id)
    if run is not None:
        if identity.role is not Role.ADMIN and run.token_id != identity.token_id:
            raise IngestError(
                f"run {uuid} was pushed by '{run.token}'; only they or an admin may push it again.", 403
            )
        if gone := next((name for name, digest in stored.items() if uuids.get(name) != digest), None):
            raise IngestError(
                f"trial {gone} of run {uuid} is stored with other contents; stored results do not change.",
                CONFLICT,
            )
    new = [name for name in uuids if name not in stored]
    for start in range(0, len(new), 500):
        other = connection.execute(
            select(TrialTable.uuid, RunTable.uuid.label("run"))
            .join(RunTable, RunTable.id == TrialTable.run_id)
            .where(TrialTable.uuid.in_(new[start : start + 500]))
        ).first()
        if other is not None:
            raise IngestError(f"trial {other.uuid} is already stored, as part of run {other.run}.", CONFLICT)
    return set() if run is None else _remove(connection, run.id)


def _stored_trials(connection: Connection, run_id: int) -> dict[str, str]:
    rows = connection.execute(select(TrialTable.uuid, TrialTable.digest).where(TrialTable.run_id == run_id))
    return {row.uuid: row.digest for row in rows}


def _remove(connection: Connection, run_id: int) -> set[int]:
    results = select(ResultTable.id).where(ResultTable.run_id == run_id)
    cases = set(connection.execute(select(ResultTable.case_id).where(ResultTable.run_id == run_id)).scalars())
    connection.execute(delete(ChangeTable).where(ChangeTable.result_id.in_(results)))
    connection.execute(delete(TrialTable).where(TrialTable.run_id == run_id))
    connection.execute(delete(ResultTable).where(ResultTable.run_id == run_id))
    connection.execute(delete(RunTable).where(RunTable.id == run_id))
    return cases


def _machine(connection: Connection, checked: CheckedRun, now: float) -> int:
    machine, created = checked.machine, min(checked.run["created"], now)
    row = connection.execute(
        select(MachineTable.id, MachineTable.last_seen).where(MachineTable.digest == machine["digest"])
    ).one_or_none()
    if row is None:
        return _insert(
            connection, MachineTable, {**machine, "first_seen": created, "last_seen": created, "runs": 0}
        )
    if created >= row.last_seen:
        changed = {"facts": machine["facts"], "last_seen": created}
        connection.execute(update(MachineTable).where(MachineTable.id == row.id).values(changed))
    return int(row.id)


def _count_runs(connection: Connection, machine_id: int) -> None:
    count = select(func.count()).where(RunTable.machine_id == machine_id).scalar_subquery()
    connection.execute(update(MachineTable).where(MachineTable.id == machine_id).values(runs=count))


def _pack(connection: Connection, checked: CheckedRun, received: Received, now: float) -> int:
    return _insert(
        connection,
        PackTable,
        {
            "sha256": received.sha256,
            "bytes": received.bytes,
            "received": now,
            "token_id": received.identity.token_id,
            "token": received.identity.name,
            "signer": checked.signer,
        },
    )


def _case(connection: Connection, line: CheckedResult, machine_id: int, run_id: int) -> int:
    number = connection.execute(
        select(CaseTable.id).where(CaseTable.digest == line.case["digest"])
    ).scalar_one_or_none()
    if number is not None:
        return int(number)
    # Its summary follows from its results once they are there.
    result = line.result
    summary = {
        "results": 0,
        "first_time": result["time"],
        "last_time": result["time"],
        "last_throughput": result["throughput"],
        "last_n": result["n"],
        "last_run_id": run_id,
        "last_doubts": [],
        "conformance": result["conformance"],
        "best_throughput": result["throughput"],
        "changes": 0,
        "recent": [],
    }
    return _insert(connection, CaseTable, {**line.case, **summary, "machine_id": machine_id})


def _result(connection: Connection, line: CheckedResult, case_id: int, run_id: int) -> int:
    own = {name: value for name, value in line.facts.items() if name in OWN_FACTS}
    shared = {name: value for name, value in line.facts.items() if name not in OWN_FACTS}
    row = {
        **line.result,
        "case_id": case_id,
        "run_id": run_id,
        "facts_id": _facts(connection, shared),
        "own_facts": own,
    }
    return _insert(connection, ResultTable, row)


def _facts(connection: Connection, facts: dict[str, str]) -> int:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    number = connection.execute(
        select(FactSetTable.id).where(FactSetTable.digest == digest)
    ).scalar_one_or_none()
    return (
        int(number)
        if number is not None
        else _insert(connection, FactSetTable, {"digest": digest, "facts": facts})
    )


def _insert(connection: Connection, table: Any, row: dict[str, Any]) -> int:
    keys: Iterable[Any] | None = connection.execute(insert(table).values(row)).inserted_primary_key
    return int(next(iter(keys or ())))
