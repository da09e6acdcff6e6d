"""The questions that pages and the API ask, each a function of a connection that returns plain rows."""

from trainmark.server.database.queries.cases import (
    case,
    case_records,
    case_series,
    cases_of_machine,
    health_with_facts,
    leaderboard,
    machine,
    machine_detail,
    machines,
    stored_series,
)
from trainmark.server.database.queries.overview import audit_log, changes_since, overview, search
from trainmark.server.database.queries.runs import result, run, runs

__all__ = [
    "audit_log",
    "case",
    "case_records",
    "case_series",
    "cases_of_machine",
    "changes_since",
    "health_with_facts",
    "leaderboard",
    "machine",
    "machine_detail",
    "machines",
    "overview",
    "result",
    "run",
    "runs",
    "search",
    "stored_series",
]
