"""A history in the terminal and as Markdown."""

from __future__ import annotations

from trainmark.report.format.markup import plain
from trainmark.report.format.words import Lang
from trainmark.report.history.cells import change_bounds, date, percent_change, probability
from trainmark.report.history.model import Histories, History, MarkedChange
from trainmark.report.history.tables import facts_table, overview_table, points_table
from trainmark.report.history.words import history_words
from trainmark.visible import one_line

# Facts shown of a change; JSON has all.
MOST_FACTS = 6


def as_text(histories: Histories, detailed: bool, width: int | None = None, lang: Lang = "en") -> str:
    """The table of cases, or with `detailed` each case point by point."""
    if detailed:
        parts = ["\n".join(case_lines(case, width, lang)) for case in histories.cases]
    else:
        parts = ["\n".join(overview_table(histories, lang).lines(width))]
    return "\n\n".join([*parts, "\n".join(summary_lines(histories, lang))]) + "\n"


def case_lines(case: History, width: int | None = None, lang: Lang = "en") -> list[str]:
    """Return one case: its results, then each change with the facts that fit it."""
    lines = [f"{one_line(case.name)} ({case.rate_unit})", *points_table(case, lang).lines(width)]
    for marked in reversed(case.changes):
        lines += ["", change_sentence(marked, lang), *_facts(marked, width, lang)]
    return lines


def _facts(marked: MarkedChange, width: int | None, lang: Lang) -> list[str]:
    if not marked.facts:
        return [history_words(lang)["no_fact"]]
    room = width - 2 if width else None
    return [f"  {line}" for line in facts_table(marked, lang, MOST_FACTS).lines(room)]


def change_sentence(marked: MarkedChange, lang: Lang = "en") -> str:
    """`−4.2 % [−4.8, −3.6] from 2026-11-02 on (nightly-41). Probability …`."""
    w, change = history_words(lang), marked.change
    sentence = w["change_sentence"].format(
        ratio=percent_change(change.ratio),
        bounds=change_bounds(change),
        date=date(marked.point.time),
        run=one_line(marked.point.run),
    )
    return f"{sentence} {chance_words(marked, lang)}"


def chance_words(marked: MarkedChange, lang: Lang = "en") -> str:
    return history_words(lang)["probability"].format(
        probability=probability(marked.change.probability), count=marked.change.confirmed_by
    )


def summary_lines(histories: Histories, lang: Lang = "en") -> list[str]:
    """Return how much is shown, the number of changes, and what was left out."""
    w = history_words(lang)
    counts = {"results": histories.results, "cases": len(histories.cases), "runs": histories.runs}
    lines = [w["summary"].format(**counts), changes_line(histories, lang)]
    if histories.left_out:
        fact = w[f"by_{histories.by}"]
        lines.append(w["left_out"].format(count=histories.left_out, fact=fact))
    return lines


def changes_line(histories: Histories, lang: Lang = "en") -> str:
    w, slower = history_words(lang), sum(marked.change.regression for _, marked in histories.changes)
    if not histories.changes:
        return w["no_changes"]
    return w["changes_count"].format(slower=slower, faster=len(histories.changes) - slower)


def as_markdown(histories: Histories, detailed: bool, lang: Lang = "en") -> str:
    w = history_words(lang)
    parts = [f"# {w['title']}", plain(" ".join(summary_lines(histories, lang)))]
    parts.append(overview_table(histories, lang).markdown())
    for case in histories.cases:
        if case.changes or detailed:
            parts.append(f"## {plain(case.name)}")
        for marked in reversed(case.changes):
            parts.append(plain(change_sentence(marked, lang)))
            parts.append(
                facts_table(marked, lang, MOST_FACTS).markdown() if marked.facts else plain(w["no_fact"])
            )
        if detailed:
            parts.append(points_table(case, lang).markdown())
    return "\n\n".join(parts) + "\n"
