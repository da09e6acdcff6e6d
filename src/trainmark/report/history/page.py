"""A history as one HTML file that needs no network; its parts also make up the pages of a server.

`case_view` is all that the macro `case` of history_case.html.j2 shows of one case, `overview` what the macro
`overview` shows of all; where links lead is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from trainmark.base.text import one_line
from trainmark.measure.history.changes import LevelDrift
from trainmark.measure.history.facts import fact_differences
from trainmark.measure.history.series import DATE, RunPoint
from trainmark.report.chart.model import Plot
from trainmark.report.format import number, templating
from trainmark.report.format.page import frame
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.report.history.cells import (
    change_bounds,
    date,
    date_time,
    doubts_text,
    fact_texts,
    named,
    percent_change,
)
from trainmark.report.history.chart import plot, spark
from trainmark.report.history.model import Histories, History, MarkedChange
from trainmark.report.history.tables import best_fact, drift_words, facts_table, points_table
from trainmark.report.history.text import chance_words, drift_sentence, summary_lines
from trainmark.report.history.verdict import no_change_verdict
from trainmark.report.history.words import history_words

STYLE = "history.css"
# Rows of facts that are shown of a change; those with a lower fit are folded away.
MOST_FACTS = 5

ReportLink = Callable[[RunPoint], str]
CaseLink = Callable[[History], str]


@dataclass(frozen=True)
class ChangeView:
    """A change as the page shows it; `look` is bad or good, or unsure where it is not to be relied on."""

    look: str
    ratio: str
    bounds: str
    date: str
    run: str
    chance: str
    anchor: str
    fact: str
    facts: Table
    more: Table | None
    name: str = ""
    """Of the case, in a list over all cases."""


@dataclass(frozen=True)
class DriftView:
    """A drift as the page shows it: in a few words of the overview, and in a sentence."""

    look: str
    words: str
    sentence: str


@dataclass(frozen=True)
class PointCard:
    """One result: what a click on its dot shows."""

    anchor: str
    before: str
    after: str
    time: str
    run: str
    figure: str
    interval: str
    trials: int
    doubts: str
    report: str
    change: ChangeView | None
    differences: Table | None
    first: bool


@dataclass(frozen=True)
class CaseView:
    """One case: its chart, its changes with the newest first, and a card for each result."""

    id: str
    name: str
    machine: str
    figure: str
    unit: str
    interval: str
    date: str
    plot: Plot
    changes: tuple[ChangeView, ...]
    drifts: tuple[DriftView, ...]
    cards: tuple[PointCard, ...]
    points: Table
    no_change: str


@dataclass(frozen=True)
class OverviewRow:
    """One case in the table of all."""

    link: str
    name: str
    results: int
    figure: str
    unit: str
    interval: str
    date: str
    spark: Markup
    change: ChangeView | None
    drift: DriftView | None
    last: str
    """How the last result differs from the one before, where there is no change to show."""
    doubts: str


def render(histories: Histories, lang: Lang = "en", report_link: ReportLink = lambda _: "") -> str:
    """Return the page; `report_link` gives the address of a result's report, empty where there is none."""
    w = history_words(lang)
    env = templating.environment(lang, html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("history.html.j2").render(
        **frame(STYLE),
        w=w,
        summary=summary_lines(histories, lang),
        changes=[change_view(case, marked, lang) for case, marked in histories.changes],
        overview=overview(histories, lang),
        cases=[case_view(case, histories.by, lang, report_link) for case in histories.cases],
    )


def anchor(case: History, index: int) -> str:
    """The id of a result's card."""
    return f"r-{case.id[:10]}-{index}"


def case_anchor(case: History) -> str:
    return f"#c-{case.id}"


def overview(
    histories: Histories, lang: Lang = "en", case_link: CaseLink = case_anchor
) -> tuple[OverviewRow, ...]:
    """Return a row for each case, with its latest figure and its last change."""
    return tuple(
        OverviewRow(
            link=case_link(case),
            name=case.name,
            results=len(case.points),
            figure=number.throughput(case.latest.median),
            unit=case.rate_unit,
            interval=number.interval(case.latest.interval),
            date=date(case.latest.time),
            spark=spark(case),
            change=change_view(case, case.changes[-1], lang) if case.changes else None,
            drift=drift_view(case, case.latest_drift, lang) if case.latest_drift else None,
            last="" if case.changes else no_change_verdict(case, lang).last,
            doubts=doubts_text(case.latest.doubts, lang),
        )
        for case in histories.cases
    )


def case_view(
    case: History, by: str = DATE, lang: Lang = "en", report_link: ReportLink = lambda _: ""
) -> CaseView:
    latest = case.latest
    return CaseView(
        id=case.id,
        name=case.name,
        machine=case.series.machine,
        figure=number.throughput(latest.median),
        unit=case.rate_unit,
        interval=number.interval(latest.interval),
        date=date(latest.time),
        plot=plot(case, by, lang, lambda own, index: f"#{anchor(own, index)}"),
        changes=tuple(change_view(case, marked, lang) for marked in reversed(case.changes)),
        drifts=tuple(drift_view(case, drift, lang) for drift in reversed(case.drifts)),
        cards=tuple(point_card(case, index, lang, report_link) for index in range(len(case.points))),
        points=points_table(case, lang),
        no_change="" if case.changes or case.drifts else no_change_verdict(case, lang).sentence,
    )


def drift_view(case: History, drift: LevelDrift, lang: Lang = "en") -> DriftView:
    return DriftView(
        "bad" if drift.regression else "good", drift_words(drift, lang), drift_sentence(case, drift, lang)
    )


def change_view(case: History, marked: MarkedChange, lang: Lang = "en") -> ChangeView:
    facts = facts_table(marked, lang)
    rest = facts.rows[MOST_FACTS:]
    return ChangeView(
        look="unsure" if case.is_unreliable(marked) else "bad" if marked.change.regression else "good",
        ratio=percent_change(marked.change.ratio),
        bounds=change_bounds(marked.change),
        date=date(marked.point.time),
        run=marked.point.run,
        chance=chance_words(case, marked, lang),
        anchor=anchor(case, marked.index),
        fact=best_fact(marked, lang),
        facts=Table(facts.header, facts.rows[:MOST_FACTS], facts.right),
        more=Table(facts.header, rest, facts.right) if rest else None,
        name=case.name,
    )


def point_card(
    case: History, index: int, lang: Lang = "en", report_link: ReportLink = lambda _: ""
) -> PointCard:
    point, marked = case.points[index], case.change_at(index)
    return PointCard(
        anchor=anchor(case, index),
        before=anchor(case, index - 1) if index else "",
        after=anchor(case, index + 1) if index + 1 < len(case.points) else "",
        time=date_time(point.time),
        run=point.run,
        figure=f"{number.throughput(point.median)} {case.rate_unit}",
        interval=number.interval(point.interval),
        trials=len(point.values),
        doubts=doubts_text(point.doubts, lang),
        report=report_link(point),
        change=change_view(case, marked, lang) if marked else None,
        differences=difference_table(case.points[index - 1], point, lang) if index else None,
        first=index == 0,
    )


def difference_table(before: RunPoint, after: RunPoint, lang: Lang = "en") -> Table:
    """Every recorded fact in which two results differ; without rows where there is none."""
    w = history_words(lang)
    rows = [
        [
            named(fact.name, lang),
            *fact_texts(fact, w["not_recorded"]),
        ]
        for fact in fact_differences(before, after)
    ]
    return Table([w[name] for name in ("fact", "before", "after")], rows)
