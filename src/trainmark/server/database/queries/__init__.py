"""The questions that pages and the API ask, each a function of a connection that returns plain rows."""

from trainmark.server.database.queries.cases import case, case_series, cases, leaderboard
from trainmark.server.database.queries.machines import machine, machines
from trainmark.server.database.queries.overview import audit_log, changes_since, overview
from trainmark.server.database.queries.runs import result, run, runs
from trainmark.server.database.queries.search import search

__all__ = [
    "audit_log",
    "case",
    "case_series",
    "cases",
    "changes_since",
    "leaderboard",
    "machine",
    "machines",
    "overview",
    "result",
    "run",
    "runs",
    "search",
]
