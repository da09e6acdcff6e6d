"""Runs: the list, one run, and its report from the packed file."""

from __future__ import annotations

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.database.queries.rows import RunRow
from trainmark.server.pages import reports
from trainmark.server.pages.frame.respond import error, language_of, number_in, page, shown
from trainmark.server.pages.queries import headlines, run_before, runs_by_uuid

ROWS_A_PAGE = 50
MOST_FAILED = 50
MOST_SCRUBBED = 100


@shown(Role.READ)
def runs(request: Request) -> Response:
    number = number_in(request, "page", 1)
    with viewing(request) as connection:
        rows = queries.runs(connection, most=ROWS_A_PAGE + 1, offset=(number - 1) * ROWS_A_PAGE)
        heads = headlines(connection, rows[:ROWS_A_PAGE])
    return page(
        request,
        "runs.html.j2",
        "runs",
        rows=rows[:ROWS_A_PAGE],
        heads=heads,
        number_of_page=number,
        more=len(rows) > ROWS_A_PAGE,
    )


@shown(Role.READ)
def run(request: Request) -> Response:
    with viewing(request) as connection:
        detail = queries.run(connection, str(request.path_params["uuid"]))
        if detail is None:
            raise HTTPException(404)
        previous = run_before(connection, detail.run)
    failed = [(trial.case, trial.outcome, trial.detail) for trial in detail.trials if trial.outcome != "ok"]
    return page(
        request,
        "run.html.j2",
        "runs",
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
        rows = runs_by_uuid(connection, [str(request.path_params["uuid"])])
    if not rows:
        raise HTTPException(404)
    return rows[0]


async def report(request: Request) -> Response:
    """Answer from a thread of its own: a report that is made for the first time must not stop pages."""
    return await anyio.to_thread.run_sync(_report, request, limiter=request.app.state.report_threads)


@shown(Role.READ)
def _report(request: Request) -> Response:
    """The whole report, in a document that may run its own scripts but reach nothing of this server."""
    row = _stored(request)
    try:
        text = reports.report(request.app.state.settings, row.sha256, language_of(request))
    except reports.ReportError as failure:
        return error(request, 500, str(failure))
    return HTMLResponse(text, headers={"Content-Security-Policy": reports.policy_of(text)})
