"""Signing in with a token, and out again; tokens for admins; and forms, read no further than a form goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.guard import (
    address_of,
    form_allowed,
    identity_of,
    log_in,
    log_out,
    over_limit,
    refusal,
    safe_next,
    same_origin,
    set_cookie,
    too_many,
    viewing,
)
from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import writing
from trainmark.server.database.overview_queries import audit_log
from trainmark.server.pages.respond import error, error_page, render_page, requires

MEDIA_TYPE = "application/x-www-form-urlencoded"
LARGEST_FORM_BYTES = 16 << 10
MOST_FIELDS = 10


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; HTTPException where it is none of ours or larger than any of them."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise HTTPException(400, f"a form is sent as {MEDIA_TYPE}.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > LARGEST_FORM_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_FORM_BYTES:
                raise _too_large()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ClientDisconnect as error:
        raise HTTPException(400, "the connection ended before the form did.") from error
    except ValueError as error:
        raise HTTPException(400, "this is no form of ours.") from error


async def changing(function: Callable[..., Response], request: Request, *more: Any) -> Response:
    """Call what writes to the database in a thread of its own kind: where it has to wait, pages do not."""
    limiter = request.app.state.form_threads
    return await anyio.to_thread.run_sync(function, request, *more, limiter=limiter)


def _too_large() -> HTTPException:
    return HTTPException(413, f"a form may have {LARGEST_FORM_BYTES >> 10} KiB at most.")


def login_page(request: Request) -> Response:
    return render_page(request, "login.html.j2", refused=False, next=request.query_params.get("next", "/"))


async def login(request: Request) -> Response:
    if wait := request.app.state.login_limit.wait_seconds(address_of(request)):
        return await run_in_threadpool(error_page, request, too_many(wait))
    if not same_origin(request):
        return await run_in_threadpool(error, request, 403)
    form = await form_fields(request)
    return await changing(_logged_in, request, form.get("token", ""), form.get("next", "/"))


def _logged_in(request: Request, secret: str, place: str) -> Response:
    opened = log_in(request, secret)
    if opened is None:
        return render_page(request, "login.html.j2", status=401, refused=True, next=place)
    response = RedirectResponse(safe_next(place), 303)
    set_cookie(request, response, opened[1])
    return response


async def logout(request: Request) -> Response:
    refused = await run_in_threadpool(_logout_refused, request)
    if refused is not None:
        return refused
    if not form_allowed(request, (await form_fields(request)).get("csrf", "")):
        return await run_in_threadpool(error, request, 403)
    return await changing(_logged_out, request)


def _logged_out(request: Request) -> Response:
    response = RedirectResponse("/login", 303)
    log_out(request, response)
    return response


def _logout_refused(request: Request) -> Response | None:
    """Return what answers a form that need not be read: nobody is signed in whom it could sign out."""
    if over := over_limit(request, Role.READ):
        return error_page(request, over)
    identity = identity_of(request)
    if not same_origin(request) or identity is None or identity.session is None:
        return error(request, 403)
    return None


DAY = 86_400.0
MOST_AUDIT_ROWS = 100
LONGEST_LIFE_DAYS = 3650


@requires(Role.ADMIN)
def admin(request: Request) -> Response:
    return token_page(request)


def token_page(
    request: Request, status: int = 200, problem: str = "", made: str = "", secret: str = ""
) -> Response:
    with viewing(request) as connection:
        rows = tokens.tokens(connection)
        audit = audit_log(connection, MOST_AUDIT_ROWS)
    return render_page(
        request,
        "admin.html.j2",
        "/admin",
        status=status,
        tokens=rows,
        audit=audit,
        roles=[role.value for role in Role],
        problem=problem,
        made=made,
        secret=secret,
        now=time.time(),
    )


async def create_token(request: Request) -> Response:
    return await _changed(request, _create)


async def revoke_token(request: Request) -> Response:
    return await _changed(request, _revoke)


async def _changed(request: Request, change: Callable[[Request, dict[str, str]], Response]) -> Response:
    """Refuse whoever is no admin and bears no session before the form is read; then a form of another's."""
    refused = await run_in_threadpool(_refused, request)
    if refused is not None:
        return refused
    fields = await form_fields(request)
    if not form_allowed(request, fields.get("csrf", "")):
        return await run_in_threadpool(error, request, 403)
    return await changing(change, request, fields)


def _refused(request: Request) -> Response | None:
    refused = refusal(request, Role.ADMIN)
    if refused is not None:
        return error_page(request, refused)
    identity = identity_of(request)
    if identity is None or identity.session is None or not same_origin(request):
        return error(request, 403)
    return None


def _create(request: Request, fields: dict[str, str]) -> Response:
    name, days = fields.get("name", "").strip(), fields.get("days", "")
    try:
        role = Role(fields.get("role", ""))
    except ValueError:
        return error(request, 400)
    if days and not (days.isascii() and days.isdigit() and 0 < int(days[:9]) <= LONGEST_LIFE_DAYS):
        return error(request, 400)
    expires = time.time() + int(days) * DAY if days else None
    try:
        with writing(request.app.state.engine) as connection:
            secret = tokens.create(connection, name, role, expires)
    except UserError as failure:
        return token_page(request, 400, problem=str(failure))
    return token_page(request, made=name, secret=secret)


def _revoke(request: Request, fields: dict[str, str]) -> Response:
    try:
        with writing(request.app.state.engine) as connection:
            tokens.revoke(connection, fields.get("name", ""))
    except UserError as failure:
        return token_page(request, 400, problem=str(failure))
    return RedirectResponse("/admin", 303)
