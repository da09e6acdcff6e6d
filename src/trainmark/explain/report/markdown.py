"""An explanation as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.explain.explanation import Explanation
from trainmark.explain.report import sentences, tables
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import explain_words
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.view.markup import code, fence, plain

MOST_KERNELS, MOST_MODULES = 15, 30


def render(explanation: Explanation, lang: Lang = "en") -> str:
    return "\n\n".join(filter(None, _parts(explanation, lang))) + "\n"


def _parts(explanation: Explanation, lang: Lang) -> Iterator[str]:
    t, refused = explain_words(lang), explanation.agreement.refusal is not None
    yield f"# {plain(sentences.subject_line(explanation.subject, lang))}"
    yield from (f"**{plain(doubt)}**" for doubt in sentences.doubt_sentences(explanation, lang))
    yield f"**{plain(sentences.rate_sentence(explanation, lang))}**"
    yield plain(sentences.where_sentence(explanation, lang))
    yield plain(sentences.first_sentence(explanation, lang))
    yield f"## {t['where']}"
    if refused:
        yield f"**{plain(sentences.refusal_sentence(explanation, lang))}**"
    else:
        yield tables.step_table(explanation, lang).markdown()
        yield plain(t["where_note"])
        yield plain(sentences.floor_sentence(explanation, lang))
    yield plain(sentences.agreement_words(explanation, lang))
    if not refused:
        yield from _titled(t["idle_title"], tables.idle_table(explanation, lang))
    if explanation.advice:
        yield f"## {t['advice']}"
        yield "\n".join(_advice(explanation, lang))
    yield from _titled(t["what_if"], tables.what_if_table(explanation, lang), t["what_if_note"])
    if explanation.what_ifs:
        yield "\n".join(
            f"- {plain(sentence(change.title, lang))}: {plain(sentence(change.why, lang))}"
            for change in explanation.what_ifs
        )
    yield plain(sentences.basis_sentence(explanation, lang))
    if not refused:
        yield from _titled(t["kernels_title"], tables.kernels_table(explanation, MOST_KERNELS, lang))
        yield from _titled(
            tables.modules_title(explanation, lang), tables.modules_table(explanation, MOST_MODULES, lang)
        )
        yield from _titled(t["ranks"], tables.ranks_table(explanation, lang), t["ranks_note"])
        yield from _titled(t["buckets"], tables.buckets_table(explanation, lang))
    if explanation.memory is not None:
        yield f"## {t['memory']}"
        yield plain(sentences.memory_sentence(explanation, lang))
        yield tables.memory_table(explanation, lang).markdown() if explanation.memory.parts else ""
        yield "\n".join(f"- {plain(sentence(text, lang))}" for text in explanation.memory.suggestions)
    if explanation.notes:
        yield f"## {t['notes']}"
        yield "\n".join(f"- {plain(sentence(note, lang))}" for note in explanation.notes)


def _advice(explanation: Explanation, lang: Lang) -> Iterator[str]:
    for place, advice in enumerate(explanation.advice, 1):
        yield f"{place}. {plain(sentence(advice.sentence, lang))} {plain(sentences.gain_words(advice, lang))}"
        if not advice.is_line:
            yield f"   {plain(sentence(advice.how, lang))}"
        elif "\n" in advice.how.strip():
            yield "\n" + "\n".join(f"   {line}" for line in fence(advice.how).splitlines()) + "\n"
        elif advice.how.strip():
            yield f"   {code(advice.how)}"


def _titled(title: str, table: Table, note: str = "") -> Iterator[str]:
    if table.rows:
        yield f"## {title}"
        yield table.markdown()
        yield plain(note)
