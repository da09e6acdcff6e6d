"""Tokens for admins: made, listed, revoked; and the end of the audit log."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.guard import identity_of, refusal
from trainmark.server.access.roles import Role
from trainmark.server.access.sessions import form_allowed, same_origin
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.database.engine import writing
from trainmark.server.pages.account.forms import changing, form_fields
from trainmark.server.pages.frame.respond import error, error_page, page, shown

DAY = 86_400.0
MOST_AUDIT_ROWS = 100
LONGEST_LIFE_DAYS = 3650


@shown(Role.ADMIN)
def admin(request: Request) -> Response:
    return token_page(request)


def token_page(
    request: Request, status: int = 200, problem: str = "", made: str = "", secret: str = ""
) -> Response:
    with viewing(request) as connection:
        rows = tokens.tokens(connection)
        audit = queries.audit_log(connection, MOST_AUDIT_ROWS)
    return page(
        request,
        "admin.html.j2",
        "admin",
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
