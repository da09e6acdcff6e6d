"""An explanation for a terminal: the answer first, then where the step goes and what would change it."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.base.text import one_line
from trainmark.explain.explanation import Explanation
from trainmark.explain.report import sentences, tables
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import cause_name, explain_words
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.view.terminal import wrapped

MOST_KERNELS, MOST_MODULES, MOST_BUCKETS, MOST_EVIDENCE = 5, 10, 16, 4
LONGEST_MODULE = 36
LEAST_EVIDENT = 0.001  # of the step


def lines(explanation: Explanation, width: int | None = None, lang: Lang = "en") -> list[str]:
    return [
        *headline(explanation, width, lang),
        *where_lines(explanation, width, lang),
        *idle_lines(explanation, width, lang),
        *advice_lines(explanation, width, lang),
        *what_if_lines(explanation, width, lang),
        *kernel_lines(explanation, width, lang),
        *rank_lines(explanation, width, lang),
        *memory_lines(explanation, width, lang),
        *note_lines(explanation.notes, width, lang),
    ]


def headline(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    """What was explained, its step, and the first thing to do."""
    answer = (
        *sentences.doubt_sentences(explanation, lang),
        sentences.subject_line(explanation.subject, lang),
        sentences.joined(
            (sentences.rate_sentence(explanation, lang), sentences.where_sentence(explanation, lang)), lang
        ),
        sentences.first_sentence(explanation, lang),
    )
    return [line for text in answer if text.strip() for line in wrapped(text, width)]


def where_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    """The table of the step, or in its place why there are no shares."""
    t = explain_words(lang)
    agreement = sentences.agreement_words(explanation, lang)
    if explanation.agreement.refusal is not None:
        refusal = sentences.refusal_sentence(explanation, lang)
        return ["", t["where"], *wrapped(refusal, width), *wrapped(agreement, width)]
    title = f"{t['where']} ({sentences.steps_words(explanation.steps, lang)})"
    floor = sentences.floor_sentence(explanation, lang)
    return [
        "",
        title,
        *tables.step_table(explanation, lang).lines(width),
        *(wrapped(floor, width) if floor else []),
        *wrapped(agreement, width),
    ]


def idle_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    """Each cause of idle time with its evidence; the times stand in the table above."""
    least = LEAST_EVIDENT * explanation.total
    evident = [own for own in tables.idle_by_time(explanation) if own.evidence and own.nanoseconds > least]
    if not evident or explanation.agreement.refusal is not None:
        return []
    t, kind = explain_words(lang), explanation.subject.kind
    shown = ["", t["idle_title"]]
    for own in evident:
        shown += wrapped(t["cause_is"].format(cause=cause_name(own.cause, lang, kind)), width)
        for text in own.evidence[:MOST_EVIDENCE]:
            shown += wrapped(sentence(text, lang), width, "  ", "    ")
    return shown


def advice_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    if not explanation.advice:
        return []
    shown = ["", explain_words(lang)["advice"]]
    for place, advice in enumerate(explanation.advice, 1):
        text = f"{sentence(advice.sentence, lang)} {sentences.gain_words(advice, lang)}"
        shown += wrapped(text, width, f"{place}. ", "   ")
        if advice.is_line:
            shown += [f"     {one_line(line)}" for line in advice.how.splitlines() if line.strip()]
        else:
            shown += wrapped(sentence(advice.how, lang), width, "     ", "     ")
    return shown


def what_if_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    title, basis = explain_words(lang)["what_if"], sentences.basis_sentence(explanation, lang)
    shown = _titled(title, tables.what_if_table(explanation, lang), width)
    return [*shown, *(wrapped(basis, width) if basis else [])]


def kernel_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    """The longest kernels and modules."""
    if explanation.agreement.refusal is not None:
        return []
    t = explain_words(lang)
    kernels = tables.kernels_table(explanation, MOST_KERNELS, lang)
    modules = tables.modules_table(explanation, MOST_MODULES, lang, LONGEST_MODULE)
    return [
        *_titled(t["kernels_title"], kernels, width),
        *_titled(tables.modules_title(explanation, lang), modules, width),
    ]


def rank_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    if explanation.agreement.refusal is not None:
        return []
    t = explain_words(lang)
    ranks = _titled(t["ranks"], tables.ranks_table(explanation, lang), width)
    buckets = tables.buckets_table(explanation, lang)
    shown = Table(buckets.header, buckets.rows[:MOST_BUCKETS], buckets.right)
    return [
        *ranks,
        *(wrapped(t["ranks_note"], width) if ranks else []),
        *_titled(t["buckets"], shown, width),
    ]


def memory_lines(explanation: Explanation, width: int | None, lang: Lang) -> list[str]:
    if explanation.memory is None:
        return []
    peak = sentences.memory_sentence(explanation, lang)
    shown = [
        "",
        explain_words(lang)["memory"],
        *wrapped(peak, width),
        *tables.memory_table(explanation, lang).lines(width),
    ]
    for suggestion in explanation.memory.suggestions:
        shown += wrapped(sentence(suggestion, lang), width, "- ", "  ")
    return shown


def note_lines(notes: Iterable[str], width: int | None, lang: Lang) -> list[str]:
    listed = [line for note in notes for line in wrapped(sentence(note, lang), width, "- ", "  ")]
    return ["", explain_words(lang)["notes"], *listed] if listed else []


def _titled(title: str, table: Table, width: int | None) -> list[str]:
    return ["", title, *table.lines(width)] if table.rows else []
