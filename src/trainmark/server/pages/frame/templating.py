"""The Jinja environment of the pages: everything is escaped, and what a template misspells is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trainmark import __version__
from trainmark.base.text import one_line, visible
from trainmark.measure.doubts import SEVERITY, DoubtCode, Severity
from trainmark.report.answer.doubts import GRAVEST_FIRST
from trainmark.report.chart import svg
from trainmark.report.chart.model import Chart, shape, tone
from trainmark.report.format import label, number
from trainmark.report.format.doubt_words import doubt_name
from trainmark.report.format.templating import CompiledTemplates
from trainmark.report.format.words import Lang, outcome_name
from trainmark.report.history.cells import date, date_time, fact_text, named
from trainmark.server.pages.frame import chart
from trainmark.server.pages.frame.assets import assets
from trainmark.server.pages.frame.words import words

PLACE = "/static/"
CODES = {code.value: code for code in DoubtCode}
SMALL_CHANGE = 0.0095
MINUS = "−"
LONGEST_FACT = 400
Pair = tuple[str, str]


@cache
def environment(lang: Lang) -> Environment:
    """Templates of the pages, and beneath them those of the reports."""
    env = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("trainmark.server.pages", "templates"),
                PackageLoader("trainmark.report", "templates"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        bytecode_cache=CompiledTemplates(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    t = words(lang)
    env.globals.update(
        t=t, lang=lang, number=number, label=label, version=__version__, asset=asset_address, at_first=99
    )
    env.filters.update(
        one_line=one_line,
        visible=visible,
        day=day,
        moment=moment,
        rate=label.rate_unit,
        signed_percent=signed_percent,
        plain_percent=plain_percent,
        trendline=lambda values, mark=None, look="muted": chart.trendline(values, mark, look, t["history"]),
        svg=lambda drawn, title: render_chart(drawn, title, lang),
        chart_height=svg.height,
        series_look=lambda index: f"{tone(index)} {shape(index)}",
        doubt_title=lambda code: doubt_title(code, lang),
        doubt_severity=doubt_severity,
        gravest_first=gravest_first,
        scrubbed_kind=lambda kind: t.get(f"scrubbed_kind_{kind}", kind),
        outcome_name=lambda outcome: outcome_name(outcome, lang),
        fact_title=lambda name: named(name, lang),
        fact_groups=lambda facts: fact_groups(facts, lang),
        fact_value=lambda value, name: fact_text(name, value, t["missing_fact"]),
    )
    return env


def render_chart(drawn: Chart, title: str, lang: Lang) -> Markup:
    return chart.render(drawn, title, words(lang))


def fact_groups(facts: Mapping[str, Any], lang: Lang) -> tuple[list[Pair], list[Pair]]:
    """Return names and values of the main facts, and those of packages, variables and other details."""
    groups: tuple[list[Pair], list[Pair]] = ([], [])
    for name, value in facts.items():
        text = one_line(str(value))
        cut = text if len(text) <= LONGEST_FACT else text[: LONGEST_FACT - 1] + "…"
        groups["." in name].append((one_line(named(name, lang)), cut))
    return groups


def asset_address(name: str) -> str:
    return PLACE + assets()[name].name


def day(time: float) -> str:
    return date(_bounded(time))


def moment(time: float) -> str:
    return date_time(_bounded(time))


def _bounded(time: float) -> float:
    """A time that no calendar has, which a damaged clock may give, is shown as the nearest that it has."""
    return min(max(time, 0.0), 253_402_300_799.0) if isfinite(time) else 0.0


def signed_percent(ratio: float, unit: bool = True) -> str:
    """Return `−4.2 %` for 0.958; two decimals below one per cent."""
    decimals = 2 if abs(ratio - 1) < SMALL_CHANGE else 1
    text = f"{100 * (ratio - 1):+.{decimals}f}".replace("-", MINUS)
    return f"{text} %" if unit else text


def plain_percent(ratio: float) -> str:
    """Return the size of a change without its sign."""
    return signed_percent(ratio).lstrip(f"+{MINUS}")


def doubt_title(code: str, lang: Lang) -> str:
    """Return the name of a doubt; one of a later version keeps its code."""
    return doubt_name(CODES[code], lang) if code in CODES else one_line(code)


def doubt_severity(code: str, minor: bool = False) -> str:
    """Return how grave a doubt is; one that few trials have, or of a later version, is a caution."""
    return (SEVERITY[CODES[code]] if code in CODES and not minor else Severity.CAUTION).value


def gravest_first(codes: Sequence[str], minor: Sequence[str] = ()) -> list[str]:
    return sorted(codes, key=lambda code: GRAVEST_FIRST.index(Severity(doubt_severity(code, code in minor))))
