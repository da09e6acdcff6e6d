"""Cases and machines: the lists, and one of each over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from trainmark.measure.history.changes import LevelChange, drifts
from trainmark.measure.history.changes import changes as detect
from trainmark.measure.history.facts import FactChange
from trainmark.measure.history.series import DATE, ORDER_FACTS, HistorySeries, ordered_by
from trainmark.measure.key import Key
from trainmark.pages.history import History, MarkedChange, history
from trainmark.pages.history_cells import no_change_verdict
from trainmark.pages.history_chart import ordered_chart, timed_chart
from trainmark.pages.history_page import change_sentence, drift_sentence
from trainmark.server.access.guard import viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database import case_queries
from trainmark.server.database.overview_queries import cases_with
from trainmark.server.database.rows import CaseSeries, ChangeRow, SeriesPoint
from trainmark.server.pages.charts import health_chart
from trainmark.server.pages.respond import id_in, number_in, render_page, requires, text_in
from trainmark.view.chart.model import Chart

ROWS_A_PAGE = 50
MOST_POINTS, ALL_POINTS = 150, 1000
MOST_ROWS = 20


@requires(Role.READ)
def cases(request: Request) -> Response:
    wanted, number = text_in(request, "q"), number_in(request, "page", 1)
    with viewing(request) as connection:
        rows = cases_with(connection, wanted.split(), ROWS_A_PAGE + 1, (number - 1) * ROWS_A_PAGE)
    return render_page(
        request,
        "cases.html.j2",
        "/cases",
        rows=rows[:ROWS_A_PAGE],
        wanted=wanted,
        number_of_page=number,
        more=len(rows) > ROWS_A_PAGE,
    )


@dataclass(frozen=True)
class ResultLine:
    """One result in the table: its ratio to the result before, and the change that begins with it."""

    run_uuid: str
    run: str
    time: float
    median: float
    low: float | None
    high: float | None
    trials: int
    doubts: tuple[str, ...]
    minor_doubts: tuple[str, ...]
    ratio: float | None
    change: ChangeRow | None


@requires(Role.READ)
def case(request: Request) -> Response:
    everything = request.query_params.get("all") == "1"
    order = request.query_params.get("by", DATE)
    with viewing(request) as connection:
        series = case_queries.case_series(
            connection, id_in(request), ALL_POINTS if everything else MOST_POINTS
        )
        if series is None:
            raise HTTPException(404)
        others = case_queries.siblings(connection, series.case)
    orders = [DATE, *(name for name, fact in ORDER_FACTS.items() if _varies(series.points, fact))]
    order = order if order in orders else DATE
    shown_rows = len(series.points) if everything else MOST_ROWS
    return render_page(
        request,
        "case.html.j2",
        "/cases",
        case=series.case,
        points=series.points,
        changes=series.changes,
        orders=orders,
        order=order,
        rows=result_lines(series, shown_rows),
        more_rows=len(series.points) > shown_rows,
        left_out=max(0, series.case.results - len(series.points)),
        everything=everything,
        siblings=others,
        **_over_time(series, order),
    )


def _over_time(series: CaseSeries, order: str) -> dict[str, Any]:
    """Return the chart of a case and what is said of its changes: of those by date the verdict."""
    drawn, dated = history_of(series, order), history_of(series, DATE)
    last = dated.changes[-1] if dated.changes else None
    return {
        "chart": drawn_history(series, drawn, order) if series.points else None,
        "drifts": [drift_sentence(drawn, drift) for drift in reversed(drawn.drifts)],
        "last_change": last,
        "last_change_sentence": change_sentence(dated, last) if last else "",
        "unreliable": last is not None and dated.is_unreliable(last),
        "no_change": no_change_verdict(dated) if series.points and not drawn.drifts else None,
    }


def drawn_history(series: CaseSeries, drawn: History, order: str) -> Chart:
    """Return the results over time, or one after another in the order of a fact; a dot leads to its run."""
    uuids = {id(member.point): member.run_uuid for member in series.points}

    def link(own: History, index: int) -> str:
        return f"/runs/{uuids[id(own.points[index])]}"

    return timed_chart(drawn, link) if order == DATE else ordered_chart(drawn, order, link)


def history_of(series: CaseSeries, order: str) -> History:
    """Return what the chart is drawn from: the stored changes by date, in another order analysed anew."""
    points = tuple(member.point for member in series.points)
    line = HistorySeries(Key(series.case.workload), series.case.machine, series.case.unit, points)
    if order != DATE:
        return history(ordered_by(line, order)[0], detect, series.case.label)
    marked = tuple(
        MarkedChange(_change(index, row), points[index], _facts(row))
        for index, row in series.changes
        if index
    )
    return History(series.case.label, line, marked, drifts(points, [change.change for change in marked]))


def _change(index: int, row: ChangeRow) -> LevelChange:
    return LevelChange(index, row.ratio, row.low, row.high, row.probability, row.confirmed_by)


def _facts(row: ChangeRow) -> tuple[FactChange, ...]:
    return tuple(FactChange(name, before, after, 1.0) for name, before, after in row.facts)


def _varies(points: Sequence[SeriesPoint], fact: str) -> bool:
    return len({value for member in points if (value := member.point.facts.get(fact))}) > 1


def result_lines(series: CaseSeries, most: int) -> list[ResultLine]:
    """Return the newest results, the newest first."""
    changes = dict(series.changes)
    lines = []
    for index in range(len(series.points) - 1, max(-1, len(series.points) - 1 - most), -1):
        member = series.points[index]
        point, before = member.point, series.points[index - 1].point if index else None
        lines.append(
            ResultLine(
                member.run_uuid,
                point.run,
                point.time,
                point.median,
                member.low,
                member.high,
                len(point.values),
                (*point.doubts, *member.minor_doubts),
                member.minor_doubts,
                point.median / before.median if before else None,
                changes.get(index),
            )
        )
    return lines


MOST_RUNS = 60
MOST_CASES = 20
MOST_FACT_CHANGES = 40


@requires(Role.READ)
def machines(request: Request) -> Response:
    with viewing(request) as connection:
        rows = case_queries.machines(connection)
        states = case_queries.machine_states(connection)
    return render_page(request, "machines.html.j2", "/machines", rows=rows, states=states)


@requires(Role.READ)
def machine(request: Request) -> Response:
    with viewing(request) as connection:
        row = case_queries.machine(connection, id_in(request))
        if row is None:
            raise HTTPException(404)
        cases = case_queries.cases(connection, machine_id=row.id, most=MOST_CASES + 1)
        runs = case_queries.health_with_facts(connection, row.id, MOST_RUNS)
        facts, changed = case_queries.facts_over_time(connection, runs)
    health = [run for run, _ in runs]
    known = [run for run in health if run.of_best is not None]
    doubts = Counter(code for run in health for code in run.doubts)
    return render_page(
        request,
        "machine.html.j2",
        "/machines",
        machine=row,
        health=health,
        latest=known[-1] if known else None,
        doubtful=sum(bool(run.doubts) for run in health),
        chart=health_chart(health),
        fact_changes=changed[:MOST_FACT_CHANGES],
        doubts=doubts.most_common(),
        cases=cases[:MOST_CASES],
        more_cases=len(cases) > MOST_CASES,
        facts=facts,
    )
