"""Decides for every endpoint who may call it: `@needs(Role.READ)`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from trainmark.server.access import tokens
from trainmark.server.access.roles import Role
from trainmark.server.access.tokens import Identity
from trainmark.server.access.view import viewing

COOKIE = "trainmark_session"
API = "/api/"
Endpoint = Callable[[Request], Response]


def identity_of(request: Request) -> Identity | None:
    """Return who sent a request, by its bearer token or its cookie; asked once a request."""
    if not hasattr(request.state, "identity"):
        request.state.identity = _identity(request)
    identity: Identity | None = request.state.identity
    return identity


def _identity(request: Request) -> Identity | None:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    cookie = request.cookies.get(COOKIE)
    bearer = scheme.lower() == "bearer" and bool(secret)
    if not bearer and not cookie:
        return None
    with viewing(request) as connection:
        if bearer:
            return tokens.identity(connection, secret.strip())
        return tokens.session_identity(connection, cookie or "")


def address_of(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def refusal(request: Request, needed: Role) -> Response | None:
    """Return the response that refuses a request; None where it is allowed."""
    state = request.app.state
    identity = identity_of(request)
    client = f"token:{identity.token_id}" if identity else f"address:{address_of(request)}"
    limit = state.push_limit if needed is Role.PUSH else state.request_limit
    if wait := limit.wait_seconds(client):
        return too_many(wait)
    if needed is Role.READ and state.settings.public:
        return None
    if identity is None:
        if request.url.path.startswith(API) or request.method != "GET":
            return error(
                401, "a token is needed: send `Authorization: Bearer TOKEN`.", {"WWW-Authenticate": "Bearer"}
            )
        place = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(place, safe='')}", 303)
    if not identity.role.may(needed):
        return error(
            403,
            f"this needs the role '{needed.value}', not '{identity.role.value}' of token '{identity.name}'.",
        )
    return None


def needs(role: Role) -> Callable[[Endpoint], Endpoint]:
    """Let only those with a role call an endpoint (a plain function, run in a thread)."""

    def decorate(endpoint: Endpoint) -> Endpoint:
        @functools.wraps(endpoint)
        def guarded(request: Request) -> Response:
            with viewing(request):
                return refusal(request, role) or endpoint(request)

        return guarded

    return decorate


def too_many(wait: float) -> Response:
    seconds = max(1, round(wait + 0.5))
    return error(429, f"too many requests; try again in {seconds} s.", {"Retry-After": str(seconds)})


def error(status: int, sentence: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    """Return an error as JSON, one sentence."""
    return JSONResponse({"error": sentence, **more}, status, headers)
