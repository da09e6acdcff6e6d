"""A history as tables of cells, which the terminal, Markdown and the page lay out."""

from __future__ import annotations

from trainmark.measure.history.changes import LevelDrift
from trainmark.measure.history.facts import fact_differences
from trainmark.report.format import number
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.report.history.cells import (
    arrow,
    change_bounds,
    date,
    date_time,
    doubts_text,
    fact_texts,
    fact_words,
    named,
    percent_change,
    sparkline,
)
from trainmark.report.history.model import Histories, History, MarkedChange
from trainmark.report.history.verdict import no_change_verdict
from trainmark.report.history.words import history_words

# Differences from the result before that stand in its row; the page and JSON have all.
MOST_DIFFERENCES = 3


def overview_table(histories: Histories, lang: Lang = "en") -> Table:
    """A row a case: its latest figure and interval, all results as blocks, and its last change."""
    w = history_words(lang)
    header = [
        w[name]
        for name in (
            "case",
            "results",
            "latest",
            "interval",
            "history",
            "last_change",
            "changed_fact",
            "doubts",
        )
    ]
    rows = [
        [
            case.name,
            len(case.points),
            latest_figure(case),
            number.interval(case.latest.interval),
            sparkline(case),
            *_last_change(case, lang),
            doubts_text(case.latest.doubts, lang),
        ]
        for case in histories.cases
    ]
    return Table(header, rows, right=frozenset({1, 2}))


def _last_change(case: History, lang: Lang) -> tuple[str, str]:
    """Return the drift that goes on, or else the last change and the fact that fits it best."""
    if drift := case.latest_drift:
        return drift_words(drift, lang), ""
    if not case.changes:
        return no_change_verdict(case, lang).last, ""
    return change_words(case, case.changes[-1], lang), best_fact(case.changes[-1], lang)


def latest_figure(case: History) -> str:
    return f"{number.throughput(case.latest.median)} {case.rate_unit}"


def change_words(case: History, marked: MarkedChange, lang: Lang = "en") -> str:
    """`↓ −4.2 % [−4.8, −3.6] 2026-11-02`, and whether it is not to be relied on."""
    change = marked.change
    figure = f"{arrow(change)} {percent_change(change.ratio)} {change_bounds(change)}"
    doubt = f" ({history_words(lang)['unreliable']})" if case.is_unreliable(marked) else ""
    return f"{figure} {date(marked.point.time)}{doubt}"


def drift_words(drift: LevelDrift, lang: Lang = "en") -> str:
    """`↘ −1.9 % [−2.3, −1.5] over 100 results`."""
    figure = f"{arrow(drift)} {percent_change(drift.ratio)} {change_bounds(drift)}"
    return f"{figure} {history_words(lang)['over_results'].format(count=drift.results)}"


def best_fact(marked: MarkedChange, lang: Lang = "en") -> str:
    return fact_words(marked.best, history_words(lang)["not_recorded"], lang) if marked.best else ""


def points_table(case: History, lang: Lang = "en") -> Table:
    """A row a result, the oldest first, with what differs from the one before."""
    w = history_words(lang)
    names = ("time", "run", "throughput", "interval", "trials", "change", "differs", "doubts")
    rows = []
    for index, point in enumerate(case.points):
        marked = case.change_at(index)
        rows.append(
            [
                date_time(point.time),
                point.run,
                number.throughput(point.median),
                number.interval(point.interval),
                len(point.values),
                f"{arrow(marked.change)} {percent_change(marked.change.ratio)}" if marked else "",
                _differences(case, index, lang),
                doubts_text(point.doubts, lang),
            ]
        )
    return Table([w[name] for name in names], rows, right=frozenset({2, 4}))


def _differences(case: History, index: int, lang: Lang) -> str:
    if index == 0:
        return ""
    w = history_words(lang)
    facts = fact_differences(case.points[index - 1], case.points[index])
    shown = [fact_words(fact, w["not_recorded"], lang) for fact in facts[:MOST_DIFFERENCES]]
    if len(facts) > MOST_DIFFERENCES:
        shown.append(w["more_facts"].format(count=len(facts) - MOST_DIFFERENCES))
    return "; ".join(shown)


def facts_table(marked: MarkedChange, lang: Lang = "en", most: int | None = None) -> Table:
    """A row a fact that changed with a change of level, the best fit first."""
    w = history_words(lang)
    rows = [
        [
            named(fact.name, lang),
            *fact_texts(fact, w["not_recorded"]),
            f"{fact.fit:.2f}",
        ]
        for fact in marked.facts[:most]
    ]
    return Table([w[name] for name in ("fact", "before", "after", "fit")], rows, right=frozenset({3}))
