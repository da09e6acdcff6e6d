"""All pages and their addresses."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.routing import BaseRoute, Route

from trainmark.server.pages.account.admin import admin, create_token, revoke_token
from trainmark.server.pages.account.login import login, login_page, logout
from trainmark.server.pages.api import api
from trainmark.server.pages.cases import case, cases
from trainmark.server.pages.compare import compare
from trainmark.server.pages.frame.static import static
from trainmark.server.pages.leaderboard import leaderboard
from trainmark.server.pages.machines import machine, machines
from trainmark.server.pages.overview import overview
from trainmark.server.pages.published import published
from trainmark.server.pages.runs import report, run, runs
from trainmark.server.pages.search import search


class Login(HTTPEndpoint):
    """One route for both methods: of two, only the first would tell in `Allow` what it takes."""

    get, post = staticmethod(login_page), staticmethod(login)


def routes() -> list[BaseRoute]:
    return [
        Route("/", overview),
        Route("/cases", cases),
        Route("/cases/{id:int}", case),
        Route("/runs", runs),
        Route("/runs/{uuid}", run),
        Route("/runs/{uuid}/report", report),
        Route("/compare", compare),
        Route("/machines", machines),
        Route("/machines/{id:int}", machine),
        Route("/leaderboard", leaderboard),
        Route("/published", published),
        Route("/search", search),
        Route("/login", Login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/admin", admin),
        Route("/admin/tokens", create_token, methods=["POST"]),
        Route("/admin/tokens/revoke", revoke_token, methods=["POST"]),
        Route("/api", api),
        Route("/static/{name}", static),
    ]
