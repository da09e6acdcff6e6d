"""The doubts of a report, each code once: how grave it is, which cases have it and what it says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmark.measure.doubts import Doubt, DoubtCode, Severity
from trainmark.measure.figure import Result
from trainmark.report.format.doubt_words import doubt_sentence
from trainmark.report.format.words import Lang, words

GRAVEST_FIRST = tuple(Severity)
# Of a doubt that many cases have in different words, the first say enough; the JSON report has all.
MOST_SENTENCES = 4
MOST_CASES = 3


@dataclass(frozen=True)
class DoubtNote:
    """All doubts of one code; `number` marks the cases that have it."""

    number: int
    code: DoubtCode
    severity: Severity
    lines: tuple[str, ...]


def doubt_notes(cases: Sequence[tuple[str, Result]], lang: Lang = "en") -> tuple[DoubtNote, ...]:
    """Return one note for each code among these named results, the gravest first."""
    by_code: dict[DoubtCode, list[tuple[str, Doubt]]] = {}
    for name, result in cases:
        for doubt in result.doubts:
            by_code.setdefault(doubt.code, []).append((name, doubt))
    gravest = {code: _gravest(doubt for _, doubt in own) for code, own in by_code.items()}
    ordered = sorted(by_code, key=lambda code: GRAVEST_FIRST.index(gravest[code]))
    return tuple(
        DoubtNote(number, code, gravest[code], _lines(by_code[code], len(cases), lang))
        for number, code in enumerate(ordered, 1)
    )


def marks(result: Result, notes: Sequence[DoubtNote]) -> tuple[DoubtNote, ...]:
    """Return the notes that concern this result, in their order."""
    codes = {doubt.code for doubt in result.doubts}
    return tuple(note for note in notes if note.code in codes)


def _gravest(doubts: Iterable[Doubt]) -> Severity:
    return min((doubt.severity for doubt in doubts), key=GRAVEST_FIRST.index)


def _lines(named: Sequence[tuple[str, Doubt]], results: int, lang: Lang) -> tuple[str, ...]:
    """A line for each sentence, with the cases that it concerns where they are not all."""
    t = words(lang)
    cases_of: dict[str, list[str]] = {}
    for name, doubt in named:
        cases_of.setdefault(doubt_sentence(doubt, lang), []).append(name)
    lines = [_line(sentence, cases, results, t) for sentence, cases in cases_of.items()]
    if len(lines) > MOST_SENTENCES:
        more = t["doubt_more"].format(count=len(lines) - MOST_SENTENCES)
        return (*lines[:MOST_SENTENCES], more)
    return tuple(lines)


def _line(sentence: str, cases: Sequence[str], results: int, t: dict[str, str]) -> str:
    if len(cases) == results:
        return sentence
    shown = t["list_join"].join(cases[:MOST_CASES])
    if len(cases) > MOST_CASES:
        shown = t["doubt_cases"].format(cases=shown, count=len(cases) - MOST_CASES)
    return t["doubt_of"].format(cases=shown, sentence=sentence)
