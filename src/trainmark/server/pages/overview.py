"""The first page, what changed lately; runs: the list, and one with its report; and search over them all."""

from __future__ import annotations

import os
import re
import tempfile
import time
from html import unescape
from pathlib import Path

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.measure.history.changes import FEWEST_RESULTS
from trainmark.pages.run.page import run_page
from trainmark.server.access.guard import viewing
from trainmark.server.access.tokens import Role
from trainmark.server.api.openapi import document
from trainmark.server.api.operations import PREFIX
from trainmark.server.database import overview_queries, run_queries
from trainmark.server.database.case_queries import trends
from trainmark.server.database.rows import RunRow
from trainmark.server.ingest.ingest import pack_path
from trainmark.server.pages.respond import error, language_of, number_in, render_page, requires, text_in
from trainmark.server.settings import ServerSettings
from trainmark.store.report import report_of
from trainmark.store.unpack import unpack
from trainmark.view import html
from trainmark.view.catalogue import Lang

DAY = 86_400.0
PERIODS = (7, 30, 90)
MOST_CHANGES = 60


@requires(Role.READ)
def overview(request: Request) -> Response:
    days = number_in(request, "days", PERIODS[0])
    days = days if days in PERIODS else PERIODS[0]
    since = time.time() - days * DAY
    with viewing(request) as connection:
        view = overview_queries.overview(connection, since, MOST_CHANGES)
        drawn = trends(connection, {change.case_id for change in view.changes})
        recent, heads = (
            run_queries.runs_since(connection, since),
            run_queries.headlines(connection, view.newest),
        )
    slower = sorted((change for change in view.changes if change.regression), key=lambda change: change.ratio)
    faster = sorted(
        (change for change in view.changes if not change.regression), key=lambda change: -change.ratio
    )
    return render_page(
        request,
        "overview.html.j2",
        "/",
        view=view,
        days=days,
        periods=PERIODS,
        regressions=slower,
        improvements=faster,
        slower_cases=len({change.case_id for change in slower}),
        faster_cases=len({change.case_id for change in faster}),
        runs_in_period=recent,
        heads=heads,
        judged=view.longest >= FEWEST_RESULTS,
        needed=FEWEST_RESULTS,
        trends=drawn,
        address=str(request.base_url).rstrip("/"),
    )


ROWS_A_PAGE = 50
MOST_FAILED = 50
MOST_SCRUBBED = 100


@requires(Role.READ)
def runs(request: Request) -> Response:
    number = number_in(request, "page", 1)
    with viewing(request) as connection:
        rows = run_queries.runs(connection, most=ROWS_A_PAGE + 1, offset=(number - 1) * ROWS_A_PAGE)
        heads = run_queries.headlines(connection, rows[:ROWS_A_PAGE])
    return render_page(
        request,
        "runs.html.j2",
        "/runs",
        rows=rows[:ROWS_A_PAGE],
        heads=heads,
        number_of_page=number,
        more=len(rows) > ROWS_A_PAGE,
    )


@requires(Role.READ)
def run(request: Request) -> Response:
    with viewing(request) as connection:
        detail = run_queries.run(connection, str(request.path_params["uuid"]))
        if detail is None:
            raise HTTPException(404)
        previous = run_queries.run_before(connection, detail.run)
    failed = [(trial.case, trial.outcome, trial.detail) for trial in detail.trials if trial.outcome != "ok"]
    return render_page(
        request,
        "run.html.j2",
        "/runs",
        run=detail.run,
        results=detail.results,
        facts=dict(sorted(detail.results[0].facts.items())) if detail.results else {},
        failed=failed[:MOST_FAILED],
        previous=previous,
        scrubbed=detail.scrubbed,
        most_scrubbed=MOST_SCRUBBED,
    )


def _stored(request: Request) -> RunRow:
    with viewing(request) as connection:
        rows = run_queries.runs_by_uuid(connection, [str(request.path_params["uuid"])])
    if not rows:
        raise HTTPException(404)
    return rows[0]


async def report(request: Request) -> Response:
    """Answer from a thread of its own: a report that is made for the first time must not stop pages."""
    return await anyio.to_thread.run_sync(_report, request, limiter=request.app.state.report_threads)


@requires(Role.READ)
def _report(request: Request) -> Response:
    """The whole report, in a document that may run its own scripts but reach nothing of this server."""
    row = _stored(request)
    try:
        text = stored_report(request.app.state.settings, row.sha256, language_of(request))
    except ReportError as failure:
        return error(request, 500, str(failure))
    return HTMLResponse(text, headers={"Content-Security-Policy": policy_of(text)})


@requires(Role.READ)
def search(request: Request) -> Response:
    query = text_in(request, "q")
    with viewing(request) as connection:
        result = overview_queries.search(connection, query)
        heads = run_queries.headlines(connection, result.runs)
    return render_page(
        request,
        "search.html.j2",
        query=query,
        cases=result.cases,
        runs=result.runs,
        heads=heads,
        machines=result.machines,
    )


FOLDER = "reports"
META_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
SANDBOX = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"


class ReportError(Exception):
    """A packed file that is missing or cannot be read again."""


def stored_report(settings: ServerSettings, sha256: str, lang: Lang) -> str:
    """Return a run's report, made once for each language and version of Trainmark."""
    place = settings.data / FOLDER / f"{sha256}.{__version__}.{lang}.html"
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        pass
    text = render_report(pack_path(settings, sha256), lang)
    _write(place, text)
    return text


def render_report(pack: Path, lang: Lang) -> str:
    with tempfile.TemporaryDirectory(prefix="trainmark-report-") as folder:
        try:
            run = unpack(pack, Path(folder) / "run")
        except (OSError, UserError) as error:
            raise ReportError(f"the packed file cannot be read: {error}") from error
        return html.render(run_page(report_of(run)), lang)


def _write(place: Path, text: str) -> None:
    """One rename, so that no other request reads half of it."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=place.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).rename(place)


def policy_of(text: str) -> str:
    """Return the report's own policy, which names its scripts by hashes, in a sandbox without origin."""
    match = META_POLICY.search(text)
    own = unescape(match[1]) if match else "default-src 'none'; style-src 'unsafe-inline'"
    return f"{own}; {SANDBOX}"


def api(request: Request) -> Response:
    operations = [
        (method.upper(), path, operation)
        for path, methods in sorted(document()["paths"].items())
        for method, operation in methods.items()
    ]
    return render_page(
        request, "api.html.j2", "/api", operations=operations, document=f"{PREFIX}/openapi.json"
    )
