"""Machines: the list, and the health of one over time."""

from __future__ import annotations

from collections import Counter

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database import queries
from trainmark.server.pages.frame.respond import id_in, language_of, page, shown
from trainmark.server.pages.frame.words import words
from trainmark.server.pages.plots import health_chart
from trainmark.server.pages.queries import facts_over_time, machine_states

MOST_RUNS = 60
MOST_CASES = 20
MOST_FACT_CHANGES = 40


@shown(Role.READ)
def machines(request: Request) -> Response:
    with viewing(request) as connection:
        rows = queries.machines(connection)
        states = machine_states(connection)
    return page(request, "machines.html.j2", "machines", rows=rows, states=states)


@shown(Role.READ)
def machine(request: Request) -> Response:
    with viewing(request) as connection:
        detail = queries.machine(connection, id_in(request), MOST_RUNS)
        if detail is None:
            raise HTTPException(404)
        facts, changed = facts_over_time(connection, [run.run_uuid for run in detail.health])
    known = [run for run in detail.health if run.of_best is not None]
    doubts = Counter(code for run in detail.health for code in run.doubts)
    t = words(language_of(request))
    return page(
        request,
        "machine.html.j2",
        "machines",
        machine=detail.machine,
        health=detail.health,
        latest=known[-1] if known else None,
        doubtful=sum(bool(run.doubts) for run in detail.health),
        chart=health_chart(detail.health, t),
        fact_changes=changed[:MOST_FACT_CHANGES],
        doubts=doubts.most_common(),
        cases=detail.cases[:MOST_CASES],
        more_cases=len(detail.cases) > MOST_CASES,
        facts=facts,
    )
