"""An operation of the API: one declaration gives its route and its part of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainmark.server.access.guard import error, refusal
from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.api.encode import encode

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
