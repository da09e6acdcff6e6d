"""The Jinja environments both page layouts share."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trainmark.pages import label, number
from trainmark.report.format.doubt_words import doubt_name, doubt_sentence, severity_name
from trainmark.report.format.words import Lang, outcome_name, words
from trainmark.view.chart import svg as chart_svg
from trainmark.view.chart.model import shape, tone
from trainmark.view.html import LOADERS, CompiledTemplates


@cache
def environment(lang: Lang, html: bool) -> Environment:
    """Escapes everything in HTML; a name that a template misspells is an error, not an empty string."""
    env = Environment(
        loader=ChoiceLoader([PackageLoader("trainmark.report", "templates"), *LOADERS]),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=CompiledTemplates(),
    )
    env.globals.update(t=words(lang), lang=lang, number=number, label=label)
    env.filters.update(
        doubt_name=lambda code: doubt_name(code, lang),
        doubt_sentence=lambda doubt: doubt_sentence(doubt, lang),
        severity_name=lambda severity: severity_name(severity, lang),
        outcome_name=lambda outcome: outcome_name(outcome, lang),
        fact=lambda value: fact(value, lang),
        svg=lambda chart, title: Markup(chart_svg.render(chart, title, lang)),
        chart_height=chart_svg.height,
        series_look=lambda index: f"{tone(index)} {shape(index)}",
    )
    return env


def fact(value: Any, lang: Lang) -> str:
    """An environment value in words."""
    named = words(lang)
    if value is None or value == "" or (isinstance(value, float) and not isfinite(value)):
        return named["missing_fact"]
    if isinstance(value, bool):
        return named["yes" if value else "no"]
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:,}"
    return str(value)
