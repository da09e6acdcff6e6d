"""Tokens for admins: made, listed, revoked; and the end of the audit log."""

from __future__ import annotations

import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from trainmark.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.guard import identity_of, refusal
from trainmark.server.access.roles import Role
from trainmark.server.access.sessions import form_allowed
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.database.engine import writing
from trainmark.server.pages.frame.respond import error, error_page, page, shown

DAY = 86_400.0
MOST_FIELDS, MOST_AUDIT_ROWS = 10, 100
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
    fields = await _fields(request)
    return await run_in_threadpool(_create, request, fields)


async def revoke_token(request: Request) -> Response:
    fields = await _fields(request)
    return await run_in_threadpool(_revoke, request, fields)


async def _fields(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def _refused(request: Request, fields: dict[str, str]) -> Response | None:
    """Refuse whoever is no admin, bears no session, or sends a form that no page of ours made."""
    refused = refusal(request, Role.ADMIN)
    if refused is not None:
        return error_page(request, refused) if isinstance(refused, JSONResponse) else refused
    identity = identity_of(request)
    if identity is None or identity.session is None or not form_allowed(request, fields.get("csrf", "")):
        return error(request, 403)
    return None


def _create(request: Request, fields: dict[str, str]) -> Response:
    if refused := _refused(request, fields):
        return refused
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
    if refused := _refused(request, fields):
        return refused
    try:
        with writing(request.app.state.engine) as connection:
            tokens.revoke(connection, fields.get("name", ""))
    except UserError as failure:
        return token_page(request, 400, problem=str(failure))
    return RedirectResponse("/admin", 303)
