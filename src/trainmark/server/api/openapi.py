"""The OpenAPI document of the API, made from its declarations, and all its routes."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from trainmark import __version__
from trainmark.server.access.tokens import Role
from trainmark.server.api.operations import OPERATIONS, PREFIX, Operation, Parameter
from trainmark.server.api.push import MEDIA_TYPE, download, push

KINDS: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
REFUSALS = {
    400: "A parameter is wrong",
    401: "A token is needed",
    403: "The token's role or scope does not allow it",
    404: "There is no such thing",
    429: "Too many requests; Retry-After says when to try again",
}
PUSHED = {
    "type": "object",
    "properties": {
        "run": {"type": "string", "format": "uuid"},
        "sha256": {"type": "string"},
        "new": {"type": "boolean"},
        "url": {"type": "string"},
    },
}


@functools.cache
def document() -> dict[str, Any]:
    paths = {PREFIX + operation.path: {"get": _operation(operation)} for operation in OPERATIONS}
    paths[f"{PREFIX}/packs"] = {"post": _push()}
    paths[f"{PREFIX}/packs/{{sha256}}"] = {"get": _download()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trainmark", "version": __version__, "summary": "Results of a team over time"},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **{kind.__name__: _object(kind) for kind in _named(map(_answer, OPERATIONS))},
                "Error": ERROR,
                "Pushed": PUSHED,
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "summary": operation.summary,
        "description": f"Role: {operation.role.value}.",
        "parameters": [_parameter(parameter) for parameter in operation.parameters],
        "responses": {
            "200": _response("The answer", _schema(_answer(operation))),
            **_refusals(400, 401, 403, 404, 429),
        },
    }


def _push() -> dict[str, Any]:
    pushed = {"$ref": "#/components/schemas/Pushed"}
    return {
        "summary": "Store a packed run; the answer comes once it is durable",
        "description": f"Role: {Role.PUSH.value}. X-Content-SHA256, where given, is the digest of the body.",
        "requestBody": {
            "required": True,
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "201": _response("Stored", pushed),
            "200": _response("This very file was stored before", pushed),
            **_refusals(400, 401, 403, 429),
            "409": _error("It clashes with a stored run"),
            "413": _error("The file is too large"),
            "422": _error("A figure does not follow from the events, or it is no packed run"),
        },
    }


def _download() -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
    return {
        "summary": "The very file that was pushed",
        "description": f"Role: {Role.READ.value}.",
        "parameters": [_parameter(Parameter("sha256", "Its SHA-256.", in_path=True))],
        "responses": {
            "200": {"description": "The file", "content": content},
            **_refusals(401, 403, 404, 429),
        },
    }


def _refusals(*codes: int) -> dict[str, Any]:
    return {str(code): _error(REFUSALS[code]) for code in codes}


def _error(about: str) -> dict[str, Any]:
    return _response(about, {"$ref": "#/components/schemas/Error"})


def _response(about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": KINDS[parameter.kind]}
    if parameter.kind is not str:
        schema |= {"minimum": parameter.low, "maximum": parameter.high}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "path" if parameter.in_path else "query",
        "required": parameter.in_path,
        "description": parameter.about,
        "schema": schema,
    }


def _answer(operation: Operation) -> Any:
    """Return what an operation answers with where there is such a thing."""
    returned = get_type_hints(operation.answer)["return"]
    optional = get_origin(returned) is types.UnionType
    return get_args(returned)[0] if optional else returned


def _named(hints: Iterable[Any]) -> dict[Any, None]:
    """Return the dataclasses that answers are made of, each once."""
    known: dict[Any, None] = {}
    for hint in hints:
        if dataclasses.is_dataclass(hint):
            known |= {hint: None, **_named(get_type_hints(hint).values())}
        else:
            known |= _named(get_args(hint))
    return known


def _object(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    properties = {field.name: _schema(hints[field.name]) for field in dataclasses.fields(kind)}
    return {"type": "object", "required": list(properties), "properties": properties}


def _schema(hint: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(hint):
        return {"$ref": f"#/components/schemas/{getattr(hint, '__name__', '')}"}
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [_schema(option) for option in get_args(hint)]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if hint is type(None):
        return {"type": "null"}
    return {"type": KINDS.get(hint, "object")}


def document_route() -> Route:
    async def endpoint(_request: Request) -> Response:
        return JSONResponse(document())

    return Route(f"{PREFIX}/openapi.json", endpoint)


def routes() -> list[BaseRoute]:
    return [
        document_route(),
        Route(f"{PREFIX}/packs", push, methods=["POST"]),
        Route(f"{PREFIX}/packs/{{sha256}}", download, methods=["GET"]),
        *(operation.route() for operation in OPERATIONS),
    ]
