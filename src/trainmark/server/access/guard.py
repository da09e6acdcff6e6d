"""Decides for every endpoint who may call it, in one consistent view of the database for a whole request."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from sqlalchemy import Connection, delete, insert
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from trainmark.server.access import tokens
from trainmark.server.access.tokens import Identity, Role, digest, record
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.models import SessionTable
from trainmark.server.faults import fault_of, first_line


@contextlib.contextmanager
def viewing(request: Request) -> Iterator[Connection]:
    """Return the connection of the request; the first to ask opens it, and closes it when done."""
    opened: Connection | None = getattr(request.state, "view", None)
    if opened is not None:
        yield opened
        return
    with reading(request.app.state.engine) as connection:
        request.state.view = connection
        try:
            yield connection
        finally:
            request.state.view = None


COOKIE = "trainmark_session"
API = "/api/"
NO_TOKEN = "a token is needed: send `Authorization: Bearer TOKEN`."
UNKNOWN_TOKEN = "this token is unknown, revoked or expired; ask an admin of the server for another."
Endpoint = Callable[[Request], Response]


def identity_of(request: Request) -> Identity | None:
    """Return who sent a request, by its bearer token or its cookie; asked once a request."""
    if not hasattr(request.state, "identity"):
        request.state.identity = _identity(request)
    identity: Identity | None = request.state.identity
    return identity


def _identity(request: Request) -> Identity | None:
    bearer, cookie = bearer_of(request), request.cookies.get(COOKIE)
    if bearer is None and not cookie:
        return None
    with viewing(request) as connection:
        if bearer is not None:
            return tokens.identity(connection, bearer)
        if cookie and cookie.startswith(tokens.UNSTORED):
            return tokens.unstored_identity(connection, request.app.state.settings.session_key, cookie)
        return tokens.session_identity(connection, cookie or "")


def bearer_of(request: Request) -> str | None:
    """Return the token that a request bears, whether or not there is such a token."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() or None if scheme.lower() == "bearer" else None


def address_of(request: Request) -> str:
    return request.client.host if request.client else "unknown"


def over_limit(request: Request, needed: Role) -> Response | None:
    """Count a request; return the response that refuses it where its client has sent too many."""
    state, identity = request.app.state, identity_of(request)
    client = f"token:{identity.token_id}" if identity else f"address:{address_of(request)}"
    limit = state.push_limit if needed is Role.PUSH else state.request_limit
    wait = limit.wait_seconds(client)
    return too_many(wait) if wait else None


def refusal(request: Request, needed: Role) -> Response | None:
    """Return the response that refuses a request; None where it is allowed."""
    if over := over_limit(request, needed):
        return over
    if needed is Role.READ and request.app.state.settings.public:
        return None
    identity = identity_of(request)
    if identity is None:
        if bearer_of(request) is not None:
            return error(401, UNKNOWN_TOKEN, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        if request.url.path.startswith(API) or request.method != "GET":
            return error(401, NO_TOKEN, {"WWW-Authenticate": "Bearer"})
        place = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(place, safe='')}", 303)
    if not identity.role.may(needed):
        return error(
            403,
            f"this needs the role '{needed.value}', not '{identity.role.value}' of token '{identity.name}'.",
        )
    return None


def requires_token(role: Role) -> Callable[[Endpoint], Endpoint]:
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


LOG = logging.getLogger("uvicorn.error")
UNSTORED_SECONDS = 3600.0


def csrf_token(request: Request) -> str:
    """Return what forms send back in `csrf`; it follows from the cookie, which other sites cannot read."""
    return hashlib.sha256(b"csrf:" + request.cookies.get(COOKIE, "").encode()).hexdigest()


def same_origin(request: Request) -> bool:
    """Whether the browser says that the request comes from one of our own pages."""
    if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def form_allowed(request: Request, csrf: str) -> bool:
    """Whether a form that changes something was sent by one of our own pages in this session."""
    return same_origin(request) and hmac.compare_digest(csrf.encode(), csrf_token(request).encode())


def log_in(request: Request, secret: str) -> tuple[Identity, str] | None:
    """Open a session; None where the token is not valid. The caller sets the cookie by `set_cookie`."""
    engine, settings = request.app.state.engine, request.app.state.settings
    with reading(engine) as connection:
        identity = tokens.identity(connection, secret.strip())
    if identity is None:
        with contextlib.suppress(DBAPIError), writing(engine) as connection:
            record(connection, "login-refused", "", address=address_of(request))
        return None
    try:
        return identity, _stored_session(request, identity)
    except DBAPIError as error:
        fault = fault_of(error)
        if fault is None or not fault.reading:
            raise
        # Who has to look why nothing can be written must get in.
        LOG.error("login of %s from %s: %s", identity.name, address_of(request), fault.sentence)
        return identity, tokens.unstored_session(settings.session_key, identity, UNSTORED_SECONDS)


def _stored_session(request: Request, identity: Identity) -> str:
    engine, settings = request.app.state.engine, request.app.state.settings
    cookie, now = secrets.token_urlsafe(32), time.time()
    with writing(engine) as connection:
        connection.execute(delete(SessionTable).where(SessionTable.expires < now))
        connection.execute(
            insert(SessionTable).values(
                hash=digest(cookie),
                token_id=identity.token_id,
                created=now,
                expires=now + settings.session_seconds,
            )
        )
        tokens.mark_used(connection, identity.token_id)
        record(connection, "login", identity.name, identity.name, address_of(request))
    return cookie


def log_out(request: Request, response: Response) -> None:
    identity = identity_of(request)
    if identity is not None and identity.session is not None:
        try:
            with writing(request.app.state.engine) as connection:
                connection.execute(delete(SessionTable).where(SessionTable.hash == identity.session))
                record(connection, "logout", identity.name, identity.name, address_of(request))
        except DBAPIError as error:
            LOG.error("logout of %s: the session stays until it ends (%s)", identity.name, first_line(error))
    response.delete_cookie(COOKIE, path="/")


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    settings = request.app.state.settings
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(settings.session_seconds),
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="lax",
    )


def safe_next(place: str) -> str:
    """Return where to go after logging in: a path of this server, else the overview."""
    parts = urlsplit(place)
    local = (
        not parts.scheme
        and not parts.netloc
        and place.startswith("/")
        and not place.startswith(("//", "/\\"))
    )
    return place if local and place.isprintable() else "/"
