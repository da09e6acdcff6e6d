"""The pages' templates, above those of the blocks that reports have too; style and script as static files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from trainmark import __version__
from trainmark.base.text import one_line
from trainmark.measure.doubts import DoubtCode, Severity
from trainmark.pages import label, number
from trainmark.pages.doubts import doubt_name
from trainmark.pages.facts import fact_title
from trainmark.pages.history_cells import (
    NOT_RECORDED,
    change_bounds,
    date,
    date_time,
    fact_text,
    percent_change,
)
from trainmark.pages.history_chart import ORDERS
from trainmark.pages.run.answer import GRAVEST_FIRST
from trainmark.pages.run.page import OUTCOMES
from trainmark.server.pages.charts import MARGIN_STEP, MOST_MARGIN, render_svg, trendline
from trainmark.view import frame, html
from trainmark.view.catalogue import Lang, translated
from trainmark.view.message import _

STYLES = ("report.css", "history.css")
SCRIPTS = ("trap.js", "tables.js", "report.js")
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOR_GOOD = "public, max-age=31536000, immutable"
PLACE = "/static/"


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
    stem, _dot, ending = name.partition(".")
    return Asset(f"{stem}.{sha256(content).hexdigest()[:16]}.{ending}", TYPES[ending], content)


async def static(request: Request) -> Response:
    asset = by_hashed_name().get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": FOR_GOOD})


@cache
def environment(lang: Lang) -> Environment:
    """Return the environment of the blocks with our templates, and charts without a style attribute."""
    shared = html.environment(lang)
    loader = ChoiceLoader([PackageLoader("trainmark.server.pages", "templates"), *html.LOADERS])
    env = shared.overlay(loader=loader, auto_reload=False, keep_trailing_newline=False)
    env.globals = {
        **shared.globals,
        "number": number,
        "version": __version__,
        "asset": lambda name: PLACE + assets()[name].name,
        "order_names": ORDERS,
    }
    in_words = partial(translated, lang=lang)
    history = in_words(_("History"))
    env.filters = {
        **shared.filters,
        "day": lambda time: date(_bounded(time)),
        "moment": lambda time: date_time(_bounded(time)),
        "rate": label.rate_unit,
        "percent_change": percent_change,
        "change_bounds": change_bounds,
        "trendline": lambda values, mark=None, look="muted": trendline(values, mark, look, history),
        "svg": lambda drawn, title: render_svg(drawn, title, lang),
        "doubt_title": lambda code: one_line(in_words(doubt_name(code))),
        "doubt_severity": doubt_severity,
        "gravest_first": gravest_first,
        "outcome_name": lambda outcome: in_words(OUTCOMES.get(outcome) or outcome),
        "fact_title": lambda name: in_words(fact_title(name)),
        "fact_groups": lambda facts: fact_groups(facts, lang),
        "fact_value": lambda value, name: in_words(fact_text(name, value, NOT_RECORDED)),
    }
    return env


def _bounded(time: float) -> float:
    """A time that no calendar has, which a damaged clock may give, is shown as the nearest that it has."""
    return min(max(time, 0.0), 253_402_300_799.0) if isfinite(time) else 0.0


LONGEST_FACT = 400
Pair = tuple[str, str]


def fact_groups(facts: Mapping[str, Any], lang: Lang) -> tuple[list[Pair], list[Pair]]:
    """Return names and values of the main facts, and those of packages, variables and other details."""
    groups: tuple[list[Pair], list[Pair]] = ([], [])
    for name, value in facts.items():
        text = one_line(str(value))
        cut = text if len(text) <= LONGEST_FACT else text[: LONGEST_FACT - 1] + "…"
        groups["." in name].append((one_line(translated(fact_title(name), lang)), cut))
    return groups


SEVERITIES = {code.value: code.severity for code in DoubtCode}


def doubt_severity(code: str, minor: bool = False) -> str:
    """Return how grave a doubt is; one that few trials have, or of a later version, is a caution."""
    return (Severity.CAUTION if minor else SEVERITIES.get(code, Severity.CAUTION)).value


def gravest_first(codes: Sequence[str], minor: Sequence[str] = ()) -> list[str]:
    return sorted(codes, key=lambda code: GRAVEST_FIRST.index(Severity(doubt_severity(code, code in minor))))
