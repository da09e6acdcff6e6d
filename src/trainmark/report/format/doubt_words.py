"""The words for doubts in a language: the name of a code, a clause, a sentence."""

from __future__ import annotations

from trainmark.measure.doubts import SENTENCES, Doubt, DoubtCode, Severity
from trainmark.view.catalogue import Lang, catalogue, translated

SENTENCES_ZH = {name: catalogue("zh")[text] for name, text in SENTENCES.items()}


def doubt_name(code: DoubtCode, lang: Lang) -> str:
    """Return the stable code, or its Chinese name."""
    return translated(code.label, lang)


def severity_name(severity: Severity, lang: Lang) -> str:
    return translated(severity.label, lang)


def doubt_sentence(doubt: Doubt, lang: Lang) -> str:
    return translated(doubt.text, lang)


def doubt_clause(doubt: Doubt, lang: Lang) -> str:
    """Return a few words for a verdict: `the host was busy in 4 of 6 trials`."""
    return translated(doubt.clause, lang)
