"""Finished English sentences in Chinese, by the template that made them."""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

from trainmark.report.format.words import Lang

Sentences = tuple[tuple[str, str], ...]


def translated(text: str, lang: Lang, sentences: Sentences) -> str:
    """Write a sentence anew with the same values where it fits a template; else it stays in English."""
    if lang == "en":
        return text
    for pattern, chinese in _patterns(sentences):
        if match := pattern.fullmatch(text):
            return chinese.format(**match.groupdict())
    return text


@cache
def _patterns(sentences: Sentences) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Templates with the most text of their own first: a value may not swallow what another template says."""
    ordered = sorted(sentences, key=lambda pair: -sum(len(text) for text, *_ in Formatter().parse(pair[0])))
    return tuple((re.compile(_pattern(english), re.DOTALL), chinese) for english, chinese in ordered)


def _pattern(template: str) -> str:
    pieces = Formatter().parse(template)
    return "".join(re.escape(text) + (f"(?P<{name}>.+?)" if name else "") for text, name, *_ in pieces)
