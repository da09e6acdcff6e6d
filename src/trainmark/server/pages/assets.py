"""The pages' style and script as static files, named by their content so that browsers keep them for good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from trainmark.report.format import page
from trainmark.server.pages.chart import MARGIN_STEP, MOST_MARGIN

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
    own = files("trainmark.server.pages") / "static"
    texts = {
        "site.css": "".join(map(page.asset, STYLES)) + margins() + (own / "site.css").read_text(encoding="utf-8"),
        "site.js": "\n".join(page.asset(name) for name in SCRIPTS)
        + (own / "site.js").read_text(encoding="utf-8"),
        "icon.svg": (own / "icon.svg").read_text(encoding="utf-8"),
    }
    return {name: _asset(name, text.encode()) for name, text in texts.items()}


@cache
def by_hashed_name() -> dict[str, Asset]:
    return {asset.name: asset for asset in assets().values()}


def margins() -> str:
    """Rules for the room at the left of a chart; a style attribute would need a policy that lets any in."""
    steps = range(0, MOST_MARGIN + MARGIN_STEP, MARGIN_STEP)
    return "".join(f".left-{step}{{--left:{step}px}}\n" for step in steps)


def _asset(name: str, content: bytes) -> Asset:
    stem, _, ending = name.partition(".")
    return Asset(f"{stem}.{sha256(content).hexdigest()[:16]}.{ending}", TYPES[ending], content)
