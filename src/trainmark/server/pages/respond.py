"""A request answered with a page: its language, who looks at it, and whether that one may."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from trainmark.server.access.guard import API, identity_of, refusal, viewing
from trainmark.server.access.middleware import cached
from trainmark.server.access.sessions import csrf_token
from trainmark.server.access.tokens import Role
from trainmark.server.faults import RETRY_SECONDS, fault_of
from trainmark.server.pages import language
from trainmark.server.pages.templating import environment
from trainmark.server.pages.words import words
from trainmark.view.catalogue import Lang

Endpoint = Callable[[Request], Response]
YEAR = 31_536_000
KNOWN_ERRORS = (400, 401, 403, 404, 405, 413, 429, 500, 503, 507)
KEPT_HEADERS = ("allow", "retry-after", "www-authenticate")
INTERNAL = HTTPException(500, "internal error; the server's log has it.")
LARGEST_PAGE_NUMBER = 10_000


@dataclass(frozen=True)
class Visitor:
    """Who looks at the page: the name of the token, empty for the public, and whether it is an admin's."""

    name: str = ""
    admin: bool = False
    csrf: str = ""


def visitor_of(request: Request) -> Visitor:
    identity = identity_of(request)
    if identity is None:
        return Visitor(csrf=csrf_token(request))
    return Visitor(identity.name, identity.role is Role.ADMIN, csrf_token(request))


def language_of(request: Request) -> Lang:
    return language.language(
        request.query_params.get(language.PARAMETER),
        request.cookies.get(language.COOKIE),
        request.headers.get("accept-language", ""),
    )


def render_page(
    request: Request, template: str, here: str = "", status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a template with what every page has; an explicit choice of language stays in a cookie."""
    lang = language_of(request)
    text = (
        environment(lang)
        .get_template(template)
        .render(
            {
                "site": request.app.state.settings,
                "visitor": visitor_of(request),
                "language_link": _language_link(request, lang),
                "here": here,
                **values,
            }
        )
    )
    response = HTMLResponse(text, status, {"Content-Language": "zh-Hans" if lang == "zh" else "en"})
    if language.chosen(request.query_params.get(language.PARAMETER)):
        secure = request.app.state.settings.secure
        response.set_cookie(
            language.COOKIE, lang, max_age=YEAR, path="/", secure=secure, httponly=True, samesite="lax"
        )
    return response


def _language_link(request: Request, lang: Lang) -> str:
    """The same page in the other language; after a form was sent, the page that it belongs to."""
    others = [pair for pair in request.query_params.multi_items() if pair[0] != language.PARAMETER]
    other = "en" if lang == "zh" else "zh"
    return "?" + urlencode([*others, (language.PARAMETER, other)])


def requires(role: Role) -> Callable[[Endpoint], Endpoint]:
    """Let only those with a role see a page; a refusal is a page as well.

    What all readers may see changes only with a push, and is made once until then.
    """

    def decorate(endpoint: Endpoint) -> Endpoint:
        @functools.wraps(endpoint)
        def guarded(request: Request) -> Response:
            with viewing(request):
                refused = refusal(request, role)
                if refused is not None:
                    return error_page(request, refused) if isinstance(refused, JSONResponse) else refused
                return cached(request, lambda: endpoint(request)) if role is Role.READ else endpoint(request)

        return guarded

    return decorate


def error_page(request: Request, refused: Response) -> Response:
    """Return what a refusal says as a page, with its status and its headers; programs get it as it is."""
    return (
        _with_kept(_page_of(request, refused.status_code), refused.headers) if _browses(request) else refused
    )


def error(request: Request, status: int, detail: str = "") -> Response:
    if _browses(request):
        return _page_of(request, status, detail)
    return JSONResponse({"error": detail or words("en")[_sentence(status)]}, status)


def handle_http_error(request: Request, failure: Exception) -> Response:
    """Answer what no endpoint could: a browser with a page, a program with one sentence as JSON."""
    known = failure if isinstance(failure, HTTPException) else INTERNAL
    if fault := fault_of(failure):
        known = HTTPException(fault.status, fault.sentence, {"Retry-After": str(RETRY_SECONDS)})
    if known.status_code >= 500 and not hasattr(request.state, "identity"):
        # Whoever looks at it is looked up in the database, which may be what failed.
        request.state.identity = None
    return error_page(request, JSONResponse({"error": known.detail}, known.status_code, known.headers))


def _browses(request: Request) -> bool:
    """Whether somebody reads the answer, rather than a program."""
    return not request.url.path.startswith(API) and "text/html" in request.headers.get("accept", "")


def _page_of(request: Request, status: int, detail: str = "") -> Response:
    sentence = words(language_of(request))[_sentence(status)]
    return render_page(
        request, "error.html.j2", status=status, shown_status=status, sentence=sentence, detail=detail
    )


def _sentence(status: int) -> str:
    return f"error_{status if status in KNOWN_ERRORS else 400 if status < 500 else 500}"


def _with_kept(response: Response, headers: Mapping[str, str]) -> Response:
    for name in KEPT_HEADERS:
        if name in headers:
            response.headers[name] = headers[name]
    return response


def number_in(request: Request, name: str, default: int, most: int = LARGEST_PAGE_NUMBER) -> int:
    """Return a number of the address between 1 and `most`; the default where it is none."""
    text = request.query_params.get(name, "")
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
    return min(most, max(1, value))


def text_in(request: Request, name: str, longest: int = 200) -> str:
    """Return a text of the address, without what databases cannot hold."""
    text = request.query_params.get(name, "")[:longest]
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def id_in(request: Request) -> int:
    """Return the number in the path; one that no table has is not found."""
    value: int = request.path_params["id"]
    if value > 2**63 - 1:
        raise HTTPException(404)
    return value
