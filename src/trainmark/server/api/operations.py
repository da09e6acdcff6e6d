"""The operations of the API: one declaration gives the route of each and its part of the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainmark.server.access.guard import error, refusal, viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database import case_queries, overview_queries, run_queries
from trainmark.server.database.rows import CaseRow, ChangeRow, StoredSeries, decoded

Facts = Mapping[str, str]


@dataclass(frozen=True)
class HistoryPoint:
    """One result; `run` is the UUID of its run, `values` are the throughputs of its trials.

    The first point has all recorded `facts`, a later one those that differ from the point before: None where
    a fact is not recorded any more. Most facts are the same for years.
    """

    result: int
    run: str
    name: str
    time: float
    throughput: float
    low: float | None
    high: float | None
    conformance: str
    facts: Mapping[str, str | None]
    values: tuple[float, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class HistoryChange:
    """`index` is the place of its first point."""

    index: int
    change: ChangeRow


@dataclass(frozen=True)
class History:
    case: CaseRow
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...]


def case_history(connection: Connection, case_id: int, most: int) -> History | None:
    series = case_queries.stored_series(connection, case_id, most)
    if series is None:
        return None
    changes = tuple(HistoryChange(*marked) for marked in series.changes)
    return History(series.case, tuple(_points(series)), changes)


def _points(series: StoredSeries) -> Iterator[HistoryPoint]:
    no_facts: Facts = {}
    before = no_facts, no_facts
    stored = iter(decoded(text for row in series.results for text in row[-4:-1]))
    for row, own, values, doubts in zip(series.results, stored, stored, stored, strict=True):
        number, uuid, name, time, throughput, low, high, conformance, facts_id = row[:9]
        facts = own, series.facts[facts_id]
        changed = changed_facts(before, facts)
        yield HistoryPoint(
            number, uuid, name, time, throughput, low, high, conformance, changed, values, doubts
        )
        before = facts


def changed_facts(before: tuple[Facts, Facts], after: tuple[Facts, Facts]) -> dict[str, str | None]:
    """Return the facts that differ, None for those that are gone; a side is its own and its shared facts."""
    (old, old_shared), (new, new_shared) = before, after
    names = old.keys() | new.keys()
    if old_shared is not new_shared:
        names |= old_shared.keys() | new_shared.keys()
    return {
        name: now
        for name in sorted(names)
        if (now := new.get(name, new_shared.get(name))) != old.get(name, old_shared.get(name))
    }


# Rows are plain dataclasses; json takes them apart faster than we do.
ENCODER = json.JSONEncoder(default=vars, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
PREFIX = "/api/v1"
LONGEST_TEXT = 300


@dataclass(frozen=True)
class Parameter:
    """Of the path or the query; `kind` is int, float or str, and numbers have bounds.

    The answer takes it as `argument`, where that is not its name.
    """

    name: str
    about: str
    kind: type = str
    default: Any = None
    low: float = 0
    high: float = 2**53
    in_path: bool = False
    argument: str = ""

    def value(self, text: str | None) -> Any:
        """ValueError, with a sentence, where the text is not of this kind."""
        if text is None:
            return self.default
        if self.kind is str:
            if len(text) > LONGEST_TEXT or "\0" in text:
                raise ValueError(f"'{self.name}' takes text of at most {LONGEST_TEXT} characters.")
            return text
        try:
            number = self.kind(text)
        except ValueError:
            number = None
        # Comparison is false for NaN.
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"'{self.name}' takes a number from {self.low:g} to {self.high:g}.")
        return number


@dataclass(frozen=True)
class Operation:
    """`answer` returns rows, which are sent as JSON, or None where there is no such thing.

    What it says that it returns is in the OpenAPI document.
    """

    path: str
    summary: str
    answer: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    role: Role = Role.READ

    def route(self) -> Route:
        # Starlette runs a plain function in a thread, so that a slow query stops nobody else.
        def endpoint(request: Request) -> Response:
            with viewing(request):
                return refusal(request, self.role) or self._respond(request)

        return Route(PREFIX + self.path, endpoint, methods=["GET"])

    def _respond(self, request: Request) -> Response:
        try:
            given = {
                parameter.argument or parameter.name: parameter.value(
                    (request.path_params if parameter.in_path else request.query_params).get(parameter.name)
                )
                for parameter in self.parameters
            }
        except ValueError as problem:
            return error(400, str(problem))
        with viewing(request) as connection:
            answer = self.answer(connection, **given)
        if answer is None:
            return error(404, "there is no such thing here.")
        return Response(ENCODER.encode(answer), media_type="application/json")


def limit(most: int = 1000, default: int = 100, what: str = "How many at most") -> Parameter:
    return Parameter("limit", f"{what}, up to {most}.", int, default, 1, most, argument="most")


def number(argument: str) -> Parameter:
    return Parameter("id", "Its number.", int, in_path=True, argument=argument)


OFFSET = Parameter("offset", "How many to leave out first.", int, 0)
SINCE = Parameter("since", "Unix seconds.", float, 0.0)
WORKLOAD = Parameter("workload", "Only this workload.")
DEVICE = Parameter("device", "Only this device.")
MACHINE = Parameter("machine", "Only the machine with this number.", int, argument="machine_id")
OPERATIONS = (
    Operation(
        "/overview",
        "What changed since a time, the newest runs, and totals",
        overview_queries.overview,
        (SINCE, limit()),
    ),
    Operation(
        "/changes",
        "Changes since a time, the newest first",
        overview_queries.changes_since,
        (SINCE, limit()),
    ),
    Operation(
        "/runs",
        "Runs, the newest first",
        run_queries.runs,
        (Parameter("suite", "Only runs of this suite."), MACHINE, limit(), OFFSET),
    ),
    Operation(
        "/runs/{uuid}",
        "A run with its results, its trials and what was scrubbed from it",
        run_queries.run,
        (Parameter("uuid", "The run's UUID.", in_path=True),),
    ),
    Operation(
        "/trials",
        "Trials as flat rows, in the order in which they were stored; what trainmark.load reads",
        run_queries.trial_rows,
        (
            Parameter("run", "Only trials of the run with this UUID.", argument="run_uuid"),
            Parameter("after", "Only trials after this number: `next` of the page before.", int, 0),
            limit(default=1000),
        ),
    ),
    Operation(
        "/cases",
        "Cases, those measured last first",
        case_queries.cases,
        (WORKLOAD, Parameter("framework", "Only this framework."), DEVICE, MACHINE, limit(), OFFSET),
    ),
    Operation("/cases/{id}", "A case and its summary", case_queries.case, (number("case_id"),)),
    Operation(
        "/cases/{id}/history",
        "Every result of a case, oldest first, with its changes",
        case_history,
        (number("case_id"), limit(2000, 2000, "How many of the newest results")),
    ),
    Operation("/results/{id}", "One result", run_queries.result, (number("result_id"),)),
    Operation("/machines", "Machines, those seen last first", case_queries.machines, (limit(),)),
    Operation(
        "/machines/{id}",
        "A machine, its cases and its health over time",
        case_queries.machine_detail,
        (number("machine_id"), limit()),
    ),
    Operation(
        "/leaderboard",
        "The fastest cases of every workload and device",
        case_queries.leaderboard,
        (WORKLOAD, DEVICE, limit(100, 10, "How many of each")),
    ),
    Operation(
        "/search",
        "Cases, runs and machines that contain every word",
        overview_queries.search,
        (Parameter("q", "The words.", default="", argument="text"), limit(100, 20, "How many of each")),
    ),
    Operation(
        "/audit",
        "The newest entries of the audit log",
        overview_queries.audit_log,
        (limit(), Parameter("before", "Unix seconds.", float)),
        Role.ADMIN,
    ),
)
