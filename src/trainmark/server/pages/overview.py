"""The first page, what changed lately; runs: the list, and one; and search over cases, runs and machines."""

from __future__ import annotations

import time

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trainmark.measure.history.changes import FEWEST_RESULTS
from trainmark.server.access.guard import viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database import overview_queries, run_queries
from trainmark.server.database.case_queries import trends
from trainmark.server.database.rows import RunRow
from trainmark.server.pages import reports
from trainmark.server.pages.respond import error, language_of, number_in, render_page, requires, text_in

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
        text = reports.report(request.app.state.settings, row.sha256, language_of(request))
    except reports.ReportError as failure:
        return error(request, 500, str(failure))
    return HTMLResponse(text, headers={"Content-Security-Policy": reports.policy_of(text)})


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
