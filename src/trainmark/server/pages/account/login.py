"""Signing in with a token, and out again."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trainmark.server.access.guard import address_of, too_many
from trainmark.server.access.sessions import form_allowed, log_in, log_out, safe_next, same_origin, set_cookie
from trainmark.server.pages.frame.respond import error, error_page, page

MOST_FIELDS = 10


def login_page(request: Request) -> Response:
    return page(request, "login.html.j2", refused=False, next=request.query_params.get("next", "/"))


async def login(request: Request) -> Response:
    if wait := request.app.state.login_limit.wait_seconds(address_of(request)):
        return await run_in_threadpool(error_page, request, too_many(wait))
    if not same_origin(request):
        return await run_in_threadpool(error, request, 403)
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        secret, place = str(form.get("token", "")), str(form.get("next", "/"))
    return await run_in_threadpool(_logged_in, request, secret, place)


def _logged_in(request: Request, secret: str, place: str) -> Response:
    opened = log_in(request, secret)
    if opened is None:
        return page(request, "login.html.j2", status=401, refused=True, next=place)
    response = RedirectResponse(safe_next(place), 303)
    set_cookie(request, response, opened[1])
    return response


async def logout(request: Request) -> Response:
    async with request.form(max_files=0, max_fields=MOST_FIELDS) as form:
        csrf = str(form.get("csrf", ""))
    if not form_allowed(request, csrf):
        return await run_in_threadpool(error, request, 403)
    response = RedirectResponse("/login", 303)
    await run_in_threadpool(log_out, request, response)
    return response
