"""What can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from trainmark.server.access.roles import Role
from trainmark.server.api.encode import encoded_rows
from trainmark.server.api.history import encoded_history
from trainmark.server.api.operation import Operation, Parameter
from trainmark.server.database import queries
from trainmark.server.database.queries.rows import CaseRow
from trainmark.server.database.queries.trials import trial_rows

MOST = 1000
LIMIT = Parameter("limit", f"How many at most, up to {MOST}.", int, 100, 1, MOST)
OFFSET = Parameter("offset", "How many to leave out first.", int, 0)
ID = Parameter("id", "Its number.", int, in_path=True)
UUID = Parameter("uuid", "The run's UUID.", str, in_path=True)


def _case(connection: Connection, given: Mapping[str, Any]) -> Any:
    return queries.case(connection, given["id"])


def _history(connection: Connection, given: Mapping[str, Any]) -> Any:
    series = queries.stored_series(connection, given["id"], given["limit"])
    return encoded_history(series) if series else None


def _cases(connection: Connection, given: Mapping[str, Any]) -> Any:
    names = ("workload", "framework", "device", "machine", "limit", "offset")
    return encoded_rows(CaseRow, queries.case_records(connection, *(given[name] for name in names)), 3)


OPERATIONS = (
    Operation(
        "/overview",
        "What changed since a time, the newest runs, and totals",
        lambda connection, given: queries.overview(connection, given["since"], given["limit"]),
        "Overview",
        (Parameter("since", "Unix seconds.", float, 0.0), LIMIT),
    ),
    Operation(
        "/changes",
        "Changes since a time, the newest first",
        lambda connection, given: queries.changes_since(connection, given["since"], given["limit"]),
        "ChangeRow[]",
        (Parameter("since", "Unix seconds.", float, 0.0), LIMIT),
    ),
    Operation(
        "/runs",
        "Runs, the newest first",
        lambda connection, given: queries.runs(
            connection, given["suite"], given["machine"], given["limit"], given["offset"]
        ),
        "RunRow[]",
        (
            Parameter("suite", "Only runs of this suite."),
            Parameter("machine", "Only runs of the machine with this number.", int),
            LIMIT,
            OFFSET,
        ),
    ),
    Operation(
        "/runs/{uuid}",
        "A run with its results, its trials and what was scrubbed from it",
        lambda connection, given: queries.run(connection, given["uuid"]),
        "RunDetail",
        (UUID,),
    ),
    Operation(
        "/trials",
        "Trials as flat rows, in the order in which they were stored; what trainmark.load reads",
        lambda connection, given: trial_rows(connection, given["run"], given["after"], given["limit"]),
        "TrialPage",
        (
            Parameter("run", "Only trials of the run with this UUID."),
            Parameter("after", "Only trials after this number: `next` of the page before.", int, 0),
            Parameter("limit", f"How many at most, up to {MOST}.", int, MOST, 1, MOST),
        ),
    ),
    Operation(
        "/cases",
        "Cases, those measured last first",
        _cases,
        "CaseRow[]",
        (
            Parameter("workload", "Only this workload."),
            Parameter("framework", "Only this framework."),
            Parameter("device", "Only this device."),
            Parameter("machine", "Only the machine with this number.", int),
            LIMIT,
            OFFSET,
        ),
    ),
    Operation("/cases/{id}", "A case and its summary", _case, "CaseRow", (ID,)),
    Operation(
        "/cases/{id}/history",
        "Every result of a case, oldest first, with its changes",
        _history,
        "History",
        (ID, Parameter("limit", "How many of the newest results, up to 2000.", int, 2000, 1, 2000)),
    ),
    Operation(
        "/results/{id}",
        "One result",
        lambda connection, given: queries.result(connection, given["id"]),
        "ResultRow",
        (ID,),
    ),
    Operation(
        "/machines",
        "Machines, those seen last first",
        lambda connection, given: queries.machines(connection, given["limit"]),
        "MachineRow[]",
        (LIMIT,),
    ),
    Operation(
        "/machines/{id}",
        "A machine, its cases and its health over time",
        lambda connection, given: queries.machine_detail(connection, given["id"], given["limit"]),
        "MachineDetail",
        (ID, LIMIT),
    ),
    Operation(
        "/leaderboard",
        "The fastest cases of every workload and device",
        lambda connection, given: queries.leaderboard(
            connection, given["workload"], given["device"], given["limit"]
        ),
        "Board[]",
        (
            Parameter("workload", "Only this workload."),
            Parameter("device", "Only this device."),
            Parameter("limit", "How many of each, up to 100.", int, 10, 1, 100),
        ),
    ),
    Operation(
        "/search",
        "Cases, runs and machines that contain every word",
        lambda connection, given: queries.search(connection, given["q"] or "", given["limit"]),
        "SearchResult",
        (Parameter("q", "The words."), Parameter("limit", "How many of each, up to 100.", int, 20, 1, 100)),
    ),
    Operation(
        "/audit",
        "The newest entries of the audit log",
        lambda connection, given: queries.audit_log(connection, given["limit"], given["before"]),
        "AuditRow[]",
        (LIMIT, Parameter("before", "Unix seconds.", float)),
        Role.ADMIN,
    ),
)
