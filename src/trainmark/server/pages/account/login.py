"""Signing in with a token, and out again."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trainmark.server.access.guard import address_of, identity_of, over_limit, too_many
from trainmark.server.access.roles import Role
from trainmark.server.access.sessions import form_allowed, log_in, log_out, safe_next, same_origin, set_cookie
from trainmark.server.pages.account.forms import changing, form_fields
from trainmark.server.pages.frame.respond import error, error_page, page


def login_page(request: Request) -> Response:
    return page(request, "login.html.j2", refused=False, next=request.query_params.get("next", "/"))


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
        return page(request, "login.html.j2", status=401, refused=True, next=place)
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
