"""The first page: what changed lately."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from trainmark.measure.history.changes import FEWEST_RESULTS
from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.pages.frame.respond import number_in, page, shown
from trainmark.server.pages.queries import headlines, runs_since, trends

DAY = 86_400.0
PERIODS = (7, 30, 90)
MOST_CHANGES = 60


@shown(Role.READ)
def overview(request: Request) -> Response:
    days = number_in(request, "days", PERIODS[0])
    days = days if days in PERIODS else PERIODS[0]
    since = time.time() - days * DAY
    with viewing(request) as connection:
        view = queries.overview(connection, since, MOST_CHANGES)
        drawn = trends(connection, {change.case_id for change in view.changes})
        recent, heads = runs_since(connection, since), headlines(connection, view.newest)
    slower = sorted((change for change in view.changes if change.regression), key=lambda change: change.ratio)
    faster = sorted(
        (change for change in view.changes if not change.regression), key=lambda change: -change.ratio
    )
    return page(
        request,
        "overview.html.j2",
        "overview",
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
