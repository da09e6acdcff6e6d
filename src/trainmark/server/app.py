"""The application: `create_app(settings)` is what uvicorn serves."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import AsyncIterator
from importlib.resources import files

import anyio
import anyio.to_thread
from sqlalchemy import Engine, func, select
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from trainmark.server.access.middleware import RateLimit, ResponseCache, SecurityHeaders
from trainmark.server.api.openapi import routes as api_routes
from trainmark.server.database.engine import open_engine, reading, require_reachable
from trainmark.server.database.migrate import require_current
from trainmark.server.database.models import PackTable
from trainmark.server.ingest.ingest import Ingest
from trainmark.server.ingest.isolated import warm_up
from trainmark.server.ingest.webhook import Webhook
from trainmark.server.pages.account import admin, create_token, login, login_page, logout, revoke_token
from trainmark.server.pages.cases import case, cases, machine, machines
from trainmark.server.pages.compare import compare
from trainmark.server.pages.leaderboard import entries_by_workload, leaderboard, published_page
from trainmark.server.pages.overview import api, overview, report, run, runs, search
from trainmark.server.pages.respond import handle_http_error
from trainmark.server.pages.templating import by_hashed_name, environment, static
from trainmark.server.settings import ServerSettings, from_environment
from trainmark.view.catalogue import LANGUAGES

PARENT_SECONDS = 0.5
PAGES_AT_ONCE, REPORTS_AT_ONCE, PUSHES_AT_ONCE, FORMS_AT_ONCE = 2, 2, 40, 4


def create_app(settings: ServerSettings) -> Starlette:
    """Build the application; UserError where the database cannot be used.

    Endpoints find settings, engine and rate limits in `request.app.state`.
    """
    engine = open_engine(settings)
    require_reachable(engine)
    require_current(engine)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # Beside the first requests; a push that comes before waits for it.
        for work in (warm_up, warm_up_pages):
            threading.Thread(target=work, name="warm-up", daemon=True).start()
        # Few at a time: more threads than processors only wait for each other.
        anyio.to_thread.current_default_thread_limiter().total_tokens = PAGES_AT_ONCE
        app.state.webhook.start()
        yield
        # From a thread: what is being posted may take seconds, in which requests end.
        await anyio.to_thread.run_sync(app.state.webhook.close)
        engine.dispose()

    app = Starlette(
        routes=[Route("/healthz", health), *api_routes(), *page_routes()],
        middleware=[Middleware(SecurityHeaders, secure=settings.secure, failed=handle_http_error)],
        exception_handlers={HTTPException: handle_http_error},
        lifespan=lifespan,
    )
    app.state.settings, app.state.engine = settings, engine
    app.state.ingest, app.state.webhook = Ingest(settings, engine), Webhook(settings.webhook, engine)
    app.state.push_threads = anyio.CapacityLimiter(PUSHES_AT_ONCE)
    app.state.report_threads = anyio.CapacityLimiter(REPORTS_AT_ONCE)
    app.state.form_threads = anyio.CapacityLimiter(FORMS_AT_ONCE)
    app.state.health_threads = anyio.CapacityLimiter(1)
    app.state.cache = ResponseCache()
    app.state.push_limit = RateLimit(settings.pushes_per_minute)
    app.state.request_limit = RateLimit(settings.requests_per_minute)
    app.state.login_limit = RateLimit(settings.logins_per_minute)
    return app


def from_workers() -> Starlette:
    """Build the application in a worker process, from the settings in its environment."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    return create_app(from_environment())


def _end_with_parent(parent: int) -> None:
    """A worker must not go on serving once its supervisor was killed."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


async def health(request: Request) -> Response:
    """Answer that the server and its database do; from a thread of its own, however busy the pages are."""
    state = request.app.state
    await anyio.to_thread.run_sync(_ask_database, state.engine, limiter=state.health_threads)
    return PlainTextResponse("ok\n")


def _ask_database(engine: Engine) -> None:
    with reading(engine) as connection:
        connection.execute(select(func.max(PackTable.id)))


class Login(HTTPEndpoint):
    """One route for both methods: of two, only the first would tell in `Allow` what it takes."""

    get, post = staticmethod(login_page), staticmethod(login)


def page_routes() -> list[BaseRoute]:
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


def warm_up_pages() -> None:
    """Make what the first visitor would otherwise wait for."""
    by_hashed_name()
    for lang in LANGUAGES:
        env = environment(lang)
        for file in (files("trainmark.server.pages") / "templates").iterdir():
            env.get_template(file.name)
    entries_by_workload()
    # What was made so far stays: the collector need not walk through the ledger again during requests.
    gc.collect()
    gc.freeze()
