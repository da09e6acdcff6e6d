"""All pages."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from trainmark.server.access.guard import address_of, error, needs, too_many
from trainmark.server.access.roles import Role
from trainmark.server.access.sessions import form_allowed, log_in, log_out, safe_next, same_origin, set_cookie
from trainmark.server.database import queries
from trainmark.server.database.engine import reading

WEEK = 7 * 86400.0


@needs(Role.READ)
def overview(request: Request) -> Response:
    with reading(request.app.state.engine) as connection:
        shown = queries.overview(connection, time.time() - WEEK)
    return HTMLResponse(f"<!doctype html><title>Trainmark</title><p>{shown.results} results</p>")


def login_page(request: Request) -> Response:
    form = '<form method="post"><input name="token" type="password"><input type="submit"></form>'
    return HTMLResponse(f"<!doctype html><title>Trainmark</title>{form}")


async def login(request: Request) -> Response:
    if wait := request.app.state.login_limit.wait_seconds(address_of(request)):
        return too_many(wait)
    if not same_origin(request):
        return error(403, "this form was not sent by a page of this server.")
    async with request.form(max_files=0, max_fields=10) as form:
        token = str(form.get("token", ""))
    opened = log_in(request, token)
    if opened is None:
        return error(401, "this token is not valid.")
    response = RedirectResponse(safe_next(request.query_params.get("next", "/")), 303)
    set_cookie(request, response, opened[1])
    return response


async def logout(request: Request) -> Response:
    async with request.form(max_files=0, max_fields=10) as form:
        if not form_allowed(request, str(form.get("csrf", ""))):
            return error(403, "this form was not sent by a page of this server.")
    response = RedirectResponse("/login", 303)
    log_out(request, response)
    return response


def routes() -> list[BaseRoute]:
    return [
        Route("/", overview),
        Route("/login", login_page, methods=["GET"]),
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]
