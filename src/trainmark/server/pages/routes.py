"""All pages and their addresses; and what the first visitor would otherwise wait for."""

from __future__ import annotations

import gc
from importlib.resources import files

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trainmark.server.api.openapi import document
from trainmark.server.api.operations import PREFIX
from trainmark.server.pages.account import admin, create_token, login, login_page, logout, revoke_token
from trainmark.server.pages.cases import case, cases, machine, machines
from trainmark.server.pages.compare import compare
from trainmark.server.pages.leaderboard import entries_by_workload, leaderboard, published_page
from trainmark.server.pages.overview import overview, report, run, runs, search
from trainmark.server.pages.respond import render_page
from trainmark.server.pages.templating import by_hashed_name, environment, static
from trainmark.view.catalogue import LANGUAGES


def api(request: Request) -> Response:
    operations = [
        (method.upper(), path, operation)
        for path, methods in sorted(document()["paths"].items())
        for method, operation in methods.items()
    ]
    return render_page(
        request, "api.html.j2", "api", operations=operations, document=f"{PREFIX}/openapi.json"
    )


def warm_up() -> None:
    by_hashed_name()
    for lang in LANGUAGES:
        env = environment(lang)
        for file in (files("trainmark.server.pages") / "templates").iterdir():
            env.get_template(file.name)
    entries_by_workload()
    # What was made so far stays: the collector need not walk through the ledger again during requests.
    gc.collect()
    gc.freeze()


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
        Route("/published", published_page),
        Route("/search", search),
        Route("/login", Login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/admin", admin),
        Route("/admin/tokens", create_token, methods=["POST"]),
        Route("/admin/tokens/revoke", revoke_token, methods=["POST"]),
        Route("/api", api),
        Route("/static/{name}", static),
    ]
