"""Storing the rows of a run in one transaction."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update

from trainmark.server.access import audit, tokens
from trainmark.server.access.roles import Role
from trainmark.server.access.tokens import Identity
from trainmark.server.database.models import LONG, Case, Change, FactSet, Machine, Pack, Result, Run, Trial
from trainmark.server.ingest.check import OWN_FACTS
from trainmark.server.ingest.checked import CONFLICT, FORBIDDEN, Checked, IngestError, Line
from trainmark.server.ingest.summary import refresh

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
    chosen = select(Run.uuid, Run.suite).join(Pack, Pack.id == Run.pack_id)
    run = connection.execute(chosen.where(Pack.sha256 == received.sha256)).one_or_none()
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


def store(connection: Connection, checked: Checked, received: Received) -> Stored:
    """Store a run; IngestError where it clashes with what is there. The caller commits."""
    lock_stores(connection)
    _require_scope(received.identity, checked.run["suite"])
    if before := known(connection, received):
        return before
    if connection.execute(select(Pack.id).where(Pack.sha256 == received.sha256)).first():
        # A newer file of the run has replaced this one.
        return Stored(checked.run["uuid"], received.sha256, False)
    now = time.time()
    touched = _replaced(connection, checked, received.identity)
    machine_id = _machine(connection, checked, now)
    pack_id = _pack(connection, checked, received, now)
    run_id = _insert(
        connection,
        Run,
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
    connection.execute(insert(Trial), rows)
    begins = [refresh(connection, case_id) for case_id in sorted(touched)]
    _count_runs(connection, machine_id)
    tokens.mark_used(connection, received.identity.token_id)
    audit.record(
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


def _replaced(connection: Connection, checked: Checked, identity: Identity) -> set[int]:
    """Remove what an earlier file of the same run brought; return the cases whose history is touched.

    A run that was resumed is pushed again with more trials. Those that are stored must be in it unchanged,
    and only whoever pushed the first may push the second.
    """
    uuid = checked.run["uuid"]
    uuids = {trial["uuid"]: trial["digest"] for trial in checked.trials}
    run = connection.execute(
        select(Run.id, Run.name, Pack.token_id, Pack.token)
        .join(Pack, Pack.id == Run.pack_id)
        .where(Run.uuid == uuid)
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
            select(Trial.uuid, Run.uuid.label("run"))
            .join(Run, Run.id == Trial.run_id)
            .where(Trial.uuid.in_(new[start : start + 500]))
        ).first()
        if other is not None:
            raise IngestError(f"trial {other.uuid} is already stored, as part of run {other.run}.", CONFLICT)
    return set() if run is None else _remove(connection, run.id)


def _stored_trials(connection: Connection, run_id: int) -> dict[str, str]:
    rows = connection.execute(select(Trial.uuid, Trial.digest).where(Trial.run_id == run_id))
    return {row.uuid: row.digest for row in rows}


def _remove(connection: Connection, run_id: int) -> set[int]:
    results = select(Result.id).where(Result.run_id == run_id)
    cases = set(connection.execute(select(Result.case_id).where(Result.run_id == run_id)).scalars())
    connection.execute(delete(Change).where(Change.result_id.in_(results)))
    connection.execute(delete(Trial).where(Trial.run_id == run_id))
    connection.execute(delete(Result).where(Result.run_id == run_id))
    connection.execute(delete(Run).where(Run.id == run_id))
    return cases


def _machine(connection: Connection, checked: Checked, now: float) -> int:
    machine, created = checked.machine, min(checked.run["created"], now)
    row = connection.execute(
        select(Machine.id, Machine.last_seen).where(Machine.digest == machine["digest"])
    ).one_or_none()
    if row is None:
        return _insert(
            connection, Machine, {**machine, "first_seen": created, "last_seen": created, "runs": 0}
        )
    if created >= row.last_seen:
        changed = {"facts": machine["facts"], "last_seen": created}
        connection.execute(update(Machine).where(Machine.id == row.id).values(changed))
    return int(row.id)


def _count_runs(connection: Connection, machine_id: int) -> None:
    count = select(func.count()).where(Run.machine_id == machine_id).scalar_subquery()
    connection.execute(update(Machine).where(Machine.id == machine_id).values(runs=count))


def _pack(connection: Connection, checked: Checked, received: Received, now: float) -> int:
    return _insert(
        connection,
        Pack,
        {
            "sha256": received.sha256,
            "bytes": received.bytes,
            "received": now,
            "token_id": received.identity.token_id,
            "token": received.identity.name,
            "signer": checked.signer,
        },
    )


def _case(connection: Connection, line: Line, machine_id: int, run_id: int) -> int:
    number = connection.execute(
        select(Case.id).where(Case.digest == line.case["digest"])
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
    return _insert(connection, Case, {**line.case, **summary, "machine_id": machine_id})


def _result(connection: Connection, line: Line, case_id: int, run_id: int) -> int:
    own = {name: value for name, value in line.facts.items() if name in OWN_FACTS}
    shared = {name: value for name, value in line.facts.items() if name not in OWN_FACTS}
    row = {
        **line.result,
        "case_id": case_id,
        "run_id": run_id,
        "facts_id": _facts(connection, shared),
        "own_facts": own,
    }
    return _insert(connection, Result, row)


def _facts(connection: Connection, facts: dict[str, str]) -> int:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    number = connection.execute(select(FactSet.id).where(FactSet.digest == digest)).scalar_one_or_none()
    return (
        int(number)
        if number is not None
        else _insert(connection, FactSet, {"digest": digest, "facts": facts})
    )


def _insert(connection: Connection, table: Any, row: dict[str, Any]) -> int:
    keys: Iterable[Any] | None = connection.execute(insert(table).values(row)).inserted_primary_key
    return int(next(iter(keys or ())))
