"""A request answered with a page: its language, who looks at it, and whether that one may."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from trainmark.server.access.guard import API, csrf_token, identity_of, refusal, viewing
from trainmark.server.access.middleware import cached
from trainmark.server.access.tokens import Role
from trainmark.server.faults import RETRY_SECONDS, fault_of
from trainmark.server.pages.templating import environment
from trainmark.view import html
from trainmark.view.blocks import Page, shown_in
from trainmark.view.catalogue import LANGUAGES, Lang
from trainmark.view.message import Message, _

Endpoint = Callable[[Request], Response]
YEAR = 31_536_000
ERRORS = {
    400: _("This request cannot be understood."),
    401: _("Sign in to see this page."),
    403: _("This token may not do that."),
    404: _("There is no such page."),
    405: _("This address does not take that method."),
    413: _("This is larger than the server takes."),
    429: _("Too many requests; wait a moment."),
    500: _("The server failed; its log says why."),
    503: _("The server cannot answer now; try again in a moment."),
    507: _("The server's disk is full; try again later."),
}
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


PARAMETER = "lang"
COOKIE = "trainmark_lang"
DEFAULT: Lang = "en"


def language_of(request: Request) -> Lang:
    """Return the language of the pages: by the address, an earlier choice, or the browser; found once."""
    if not hasattr(request.state, "lang"):
        accepted = request.headers.get("accept-language", "")
        parameter, cookie = request.query_params.get(PARAMETER), request.cookies.get(COOKIE)
        request.state.lang = chosen(parameter) or chosen(cookie) or accepted_language(accepted)
    lang: Lang = request.state.lang
    return lang


def chosen(value: str | None) -> Lang | None:
    """Return the language of an explicit choice, None where it names none that there is."""
    return next((lang for lang in LANGUAGES if lang == value), None)


def accepted_language(header: str) -> Lang:
    """Return the best of an Accept-Language header (RFC 9110 §12.5.4); English where it asks for neither."""
    best, weight = DEFAULT, 0.0
    for part in header[:1000].split(","):
        tag, _, parameters = part.strip().partition(";")
        lang = chosen(tag.strip().lower().partition("-")[0])
        quality = _quality(parameters)
        if lang and quality > weight:
            best, weight = lang, quality
    return best


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 0.0


def render_page(
    request: Request, template: str, here: str = "", status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a template with what every page has; an explicit choice of language stays in a cookie."""
    lang = language_of(request)
    shared = {
        "site": request.app.state.settings,
        "visitor": visitor_of(request),
        "language_link": _language_link(request, lang),
        "here": here,
    }
    text = environment(lang).get_template(template).render({**shared, **values})
    response = HTMLResponse(text, status, {"Content-Language": "zh-Hans" if lang == "zh" else "en"})
    if chosen(request.query_params.get(PARAMETER)):
        secure = request.app.state.settings.secure
        response.set_cookie(
            COOKIE, lang, max_age=YEAR, path="/", secure=secure, httponly=True, samesite="lax"
        )
    return response


def show_page(request: Request, page: Page, here: str = "", **values: Any) -> HTMLResponse:
    """Show a page as reports and notebooks have it, in our frame; the links of `runs` stand above it."""
    lang = language_of(request)
    shown = shown_in(page.blocks, "html")
    head = list(takewhile(lambda block: isinstance(block, html.HEAD), shown))
    parts = (html.fragment(blocks, lang, env=environment(lang)) for blocks in (head, shown[len(head) :]))
    lede, main = parts
    return render_page(request, "shown.html.j2", here, page=page, lede=lede, main=main, **values)


def _language_link(request: Request, lang: Lang) -> str:
    """The same page in the other language; after a form was sent, the page that it belongs to."""
    others = [pair for pair in request.query_params.multi_items() if pair[0] != PARAMETER]
    other = "en" if lang == "zh" else "zh"
    return "?" + urlencode([*others, (PARAMETER, other)])


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
    return JSONResponse({"error": detail or _sentence(status)}, status)


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
    sentence = _sentence(status)
    return render_page(
        request, "error.html.j2", status=status, shown_status=status, sentence=sentence, detail=detail
    )


def _sentence(status: int) -> Message:
    return ERRORS.get(status) or ERRORS[400 if status < 500 else 500]


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
