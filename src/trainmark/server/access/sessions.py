"""Browsers: logging in with a token, logging out, and the token of each form against CSRF."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import secrets
import time
from urllib.parse import urlsplit

from sqlalchemy import delete, insert
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.access import tokens
from trainmark.server.access.audit import record
from trainmark.server.access.guard import COOKIE, address_of, identity_of
from trainmark.server.access.tokens import Identity, digest
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.models import SessionTable
from trainmark.server.faults import fault_of, first_line

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
