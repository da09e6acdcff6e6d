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
        row = queries.machine(connection, id_in(request))
        if row is None:
            raise HTTPException(404)
        cases = queries.cases_of_machine(connection, row.id, MOST_CASES + 1)
        runs = queries.health_with_facts(connection, row.id, MOST_RUNS)
        facts, changed = facts_over_time(connection, runs)
    health = [run for run, _ in runs]
    known = [run for run in health if run.of_best is not None]
    doubts = Counter(code for run in health for code in run.doubts)
    t = words(language_of(request))
    return page(
        request,
        "machine.html.j2",
        "machines",
        machine=row,
        health=health,
        latest=known[-1] if known else None,
        doubtful=sum(bool(run.doubts) for run in health),
        chart=health_chart(health, t),
        fact_changes=changed[:MOST_FACT_CHANGES],
        doubts=doubts.most_common(),
        cases=cases[:MOST_CASES],
        more_cases=len(cases) > MOST_CASES,
        facts=facts,
    )
