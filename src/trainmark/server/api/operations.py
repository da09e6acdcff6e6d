"""The operations of the API: one declaration gives the route of each and its part of the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainmark.server.access.guard import error, refusal, viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database import queries
from trainmark.server.database.queries.rows import CaseRow, ChangeRow, StoredSeries
from trainmark.server.database.queries.runs import trial_rows
from trainmark.server.database.queries.selects import decoded


class EncodedJson(str):
    """Text that is JSON already."""

    __slots__ = ()


# Rows are plain dataclasses; json takes them apart faster than we do.
_ENCODER = json.JSONEncoder(default=vars, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: Any) -> str:
    return value if isinstance(value, EncodedJson) else _ENCODER.encode(value)


def encoded_rows(kind: type[Any], rows: Iterable[Sequence[Any]], stored: int) -> EncodedJson:
    """Return rows as a list of objects of a dataclass; the last `stored` values of each are JSON already."""
    return EncodedJson(f"[{','.join(_objects([field.name for field in fields(kind)], rows, stored))}]")


def _objects(names: Sequence[str], rows: Iterable[Sequence[Any]], stored: int) -> Iterator[str]:
    plain, prefixes = names[:-stored], [f',"{name}":' for name in names[-stored:]]
    for row in rows:
        start = _ENCODER.encode(dict(zip(plain, row[:-stored], strict=True)))
        parts = (prefix + text for prefix, text in zip(prefixes, row[-stored:], strict=True))
        yield f"{start[:-1]}{''.join(parts)}}}"


STORED_COLUMNS = 2
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


def encoded_history(series: StoredSeries) -> EncodedJson:
    """Return a `History` as JSON."""
    points = encoded_rows(HistoryPoint, _points(series), STORED_COLUMNS)
    changes = encode([HistoryChange(*marked) for marked in series.changes])
    return EncodedJson(f'{{"case":{encode(series.case)},"points":{points},"changes":{changes}}}')


def _points(series: StoredSeries) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each `HistoryPoint`, its trials' throughputs and doubts as they are stored."""
    no_facts: Facts = {}
    before = no_facts, no_facts
    own_facts = decoded(row[-4] for row in series.results)
    for row, own in zip(series.results, own_facts, strict=True):
        number, uuid, name, time, throughput, low, high, conformance, facts_id, _, values, doubts, _ = row
        facts = own, series.facts[facts_id]
        changed = changed_facts(before, facts)
        yield number, uuid, name, time, throughput, low, high, conformance, changed, values, doubts
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


PREFIX = "/api/v1"
LONGEST_TEXT = 300
Answer = Callable[[Connection, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Parameter:
    """Of the path or the query; `kind` is int, float or str, and numbers have bounds."""

    name: str
    about: str
    kind: type = str
    default: Any = None
    low: float = 0
    high: float = 2**53
    in_path: bool = False

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
    """`answer` returns what is sent as JSON, or None where there is no such thing."""

    path: str
    summary: str
    answer: Answer
    returns: str
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
            values = {
                parameter.name: parameter.value(
                    (request.path_params if parameter.in_path else request.query_params).get(parameter.name)
                )
                for parameter in self.parameters
            }
        except ValueError as problem:
            return error(400, str(problem))
        with viewing(request) as connection:
            answer = self.answer(connection, values)
        if answer is None:
            return error(404, "there is no such thing here.")
        return Response(encode(answer), media_type="application/json")


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
