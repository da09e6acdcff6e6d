"""The pages' style and script as static files, named by their content so that browsers keep them for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from trainmark.report.format import page
from trainmark.server.pages.frame.chart import MARGIN_STEP, MOST_MARGIN

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
    styles = [*map(page.asset, STYLES), margins(), _own("site.css")]
    scripts = [*map(page.asset, SCRIPTS), _own("site.js")]
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
