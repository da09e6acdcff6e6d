"""Search over cases, runs and machines."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.pages.frame.respond import page, shown, text_in
from trainmark.server.pages.queries import headlines


@shown(Role.READ)
def search(request: Request) -> Response:
    query = text_in(request, "q")
    with viewing(request) as connection:
        result = queries.search(connection, query)
        heads = headlines(connection, result.runs)
    return page(
        request,
        "search.html.j2",
        query=query,
        cases=result.cases,
        runs=result.runs,
        heads=heads,
        machines=result.machines,
    )
