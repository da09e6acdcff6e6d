"""A history in the terminal and as Markdown."""

from __future__ import annotations

from trainmark.base.text import one_line
from trainmark.measure.history.changes import LevelDrift
from trainmark.report.format.markup import plain
from trainmark.report.format.words import Lang
from trainmark.report.history.cells import change_bounds, date, percent_change, probability
from trainmark.report.history.model import Histories, History, MarkedChange
from trainmark.report.history.tables import facts_table, overview_table, points_table
from trainmark.report.history.verdict import has_too_few, no_change_verdict
from trainmark.report.history.words import history_words

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
    """Return one case: its results, its drifts, then each change with the facts that fit it."""
    lines = [f"{one_line(case.name)} ({case.rate_unit})", *points_table(case, lang).lines(width)]
    if not case.changes and not case.drifts:
        lines += ["", no_change_verdict(case, lang).sentence]
    for drift in reversed(case.drifts):
        lines += ["", drift_sentence(case, drift, lang)]
    for marked in reversed(case.changes):
        lines += ["", change_sentence(case, marked, lang), *_facts(marked, width, lang)]
    return lines


def _facts(marked: MarkedChange, width: int | None, lang: Lang) -> list[str]:
    if not marked.facts:
        return [history_words(lang)["no_fact"]]
    room = width - 2 if width else None
    return [f"  {line}" for line in facts_table(marked, lang, MOST_FACTS).lines(room)]


def change_sentence(case: History, marked: MarkedChange, lang: Lang = "en") -> str:
    """`−4.2 % [−4.8, −3.6] from 2026-11-02 on (nightly-41). Probability …`."""
    w, change = history_words(lang), marked.change
    sentence = w["change_sentence"].format(
        ratio=percent_change(change.ratio),
        bounds=change_bounds(change),
        date=date(marked.point.time),
        run=one_line(marked.point.run),
    )
    return f"{sentence} {chance_words(case, marked, lang)}"


def drift_sentence(case: History, drift: LevelDrift, lang: Lang = "en") -> str:
    """`Drift of −1.9 % [−2.3, −1.5] over 100 results, from 2026-01-01 (nightly-0) to …`."""
    first, last = case.points[drift.first], case.points[drift.last]
    return history_words(lang)["drift_sentence"].format(
        ratio=percent_change(drift.ratio),
        bounds=change_bounds(drift),
        count=drift.results,
        first=date(first.time),
        first_run=one_line(first.run),
        last=date(last.time),
        last_run=one_line(last.run),
        probability=probability(drift.probability),
    )


def chance_words(case: History, marked: MarkedChange, lang: Lang = "en") -> str:
    w = history_words(lang)
    chance = w["probability"].format(
        probability=probability(marked.change.probability), count=marked.change.confirmed_by
    )
    return _joined(chance, w["change_unreliable"], lang) if case.is_unreliable(marked) else chance


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
    faster = len(histories.changes) - slower
    line = w["changes_count"].format(slower=slower, faster=faster) if slower + faster else w["no_changes"]
    if unreliable := sum(case.is_unreliable(marked) for case, marked in histories.changes):
        line = _joined(line, w["unreliable_count"].format(count=unreliable), lang)
    if few := sum(map(has_too_few, histories.cases)):
        untold = w["cannot_tell"].format(count=few)
        line = untold if few == len(histories.cases) else _joined(line, untold, lang)
    if not histories.drifts:
        return line
    falling = sum(drift.regression for _, drift in histories.drifts)
    counted = w["drifts_count"].format(slower=falling, faster=len(histories.drifts) - falling)
    return _joined(line, counted, lang)


def _joined(one: str, other: str, lang: Lang) -> str:
    return f"{one} {other}" if lang == "en" else one + other


def as_markdown(histories: Histories, detailed: bool, lang: Lang = "en") -> str:
    w = history_words(lang)
    parts = [f"# {w['title']}", plain(" ".join(summary_lines(histories, lang)))]
    parts.append(overview_table(histories, lang).markdown())
    for case in histories.cases:
        if case.changes or case.drifts or detailed:
            parts.append(f"## {plain(case.name)}")
        parts += [plain(drift_sentence(case, drift, lang)) for drift in reversed(case.drifts)]
        for marked in reversed(case.changes):
            parts.append(plain(change_sentence(case, marked, lang)))
            parts.append(
                facts_table(marked, lang, MOST_FACTS).markdown() if marked.facts else plain(w["no_fact"])
            )
        if detailed and not case.changes and not case.drifts:
            parts.append(plain(no_change_verdict(case, lang).sentence))
        if detailed:
            parts.append(points_table(case, lang).markdown())
    return "\n\n".join(parts) + "\n"
