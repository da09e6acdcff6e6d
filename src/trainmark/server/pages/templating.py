"""The Jinja environment of the pages, where everything is escaped; and style and script as static files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from trainmark import __version__
from trainmark.base.text import one_line, visible
from trainmark.measure.doubts import DoubtCode, Severity
from trainmark.pages import label, number
from trainmark.pages.facts import fact_title
from trainmark.pages.history.cells import date, date_time, fact_text
from trainmark.pages.run.answer import GRAVEST_FIRST
from trainmark.report.format.doubt_words import doubt_name
from trainmark.report.format.words import outcome_name
from trainmark.server.pages import charts
from trainmark.server.pages.charts import MARGIN_STEP, MOST_MARGIN
from trainmark.server.pages.words import words
from trainmark.view import frame
from trainmark.view.catalogue import Lang, translated
from trainmark.view.chart import svg
from trainmark.view.chart.model import Chart, shape, tone
from trainmark.view.html import LOADERS, CompiledTemplates

STYLES = ("report.css", "history.css")
SCRIPTS = ("trap.js", "report.js")
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Asset:
    """One file: its name with the hash in it, its media type, its bytes."""

    name: str
    media_type: str
    content: bytes


@cache
def assets() -> dict[str, Asset]:
    """Return the assets by their short names: `site.css`, `site.js`, `icon.svg`."""
    styles = [*map(frame.asset, STYLES), margins(), _own("site.css")]
    scripts = [*map(frame.asset, SCRIPTS), _own("site.js")]
    texts = {"site.css": "".join(styles), "site.js": "\n".join(scripts), "icon.svg": _own("icon.svg")}
    return {name: _asset(name, text.encode()) for name, text in texts.items()}


@cache
def by_hashed_name() -> dict[str, Asset]:
    return {asset.name: asset for asset in assets().values()}


def margins() -> str:
    """Rules for the room at the left of a chart; a style attribute would need a policy that lets any in."""
    steps = range(0, MOST_MARGIN + MARGIN_STEP, MARGIN_STEP)
    return "".join(f".left-{step}{{--left:{step}px}}\n" for step in steps)


def _own(name: str) -> str:
    return (files("trainmark.server.pages") / "static" / name).read_text(encoding="utf-8")


def _asset(name: str, content: bytes) -> Asset:
    stem, _, ending = name.partition(".")
    return Asset(f"{stem}.{sha256(content).hexdigest()[:16]}.{ending}", TYPES[ending], content)


FOR_GOOD = "public, max-age=31536000, immutable"


async def static(request: Request) -> Response:
    asset = by_hashed_name().get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": FOR_GOOD})


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
                *LOADERS,
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
        trendline=lambda values, mark=None, look="muted": charts.trendline(values, mark, look, t["history"]),
        svg=lambda drawn, title: render_chart(drawn, title, lang),
        chart_height=svg.height,
        series_look=lambda index: f"{tone(index)} {shape(index)}",
        doubt_title=lambda code: doubt_title(code, lang),
        doubt_severity=doubt_severity,
        gravest_first=gravest_first,
        scrubbed_kind=lambda kind: t.get(f"scrubbed_kind_{kind}", kind),
        outcome_name=lambda outcome: outcome_name(outcome, lang),
        fact_title=lambda name: translated(fact_title(name), lang),
        fact_groups=lambda facts: fact_groups(facts, lang),
        fact_value=lambda value, name: fact_text(name, value, t["missing_fact"]),
    )
    return env


def render_chart(drawn: Chart, title: str, lang: Lang) -> Markup:
    return charts.render_svg(drawn, title, lang)


def fact_groups(facts: Mapping[str, Any], lang: Lang) -> tuple[list[Pair], list[Pair]]:
    """Return names and values of the main facts, and those of packages, variables and other details."""
    groups: tuple[list[Pair], list[Pair]] = ([], [])
    for name, value in facts.items():
        text = one_line(str(value))
        cut = text if len(text) <= LONGEST_FACT else text[: LONGEST_FACT - 1] + "…"
        groups["." in name].append((one_line(translated(fact_title(name), lang)), cut))
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
    return (CODES[code].severity if code in CODES and not minor else Severity.CAUTION).value


def gravest_first(codes: Sequence[str], minor: Sequence[str] = ()) -> list[str]:
    return sorted(codes, key=lambda code: GRAVEST_FIRST.index(Severity(doubt_severity(code, code in minor))))
