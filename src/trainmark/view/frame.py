"""What every HTML page of ours is made of: one file, nothing fetched, no script but its own."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

# Inside a script element only these can end it early or start a comment; JSON reads the escapes back.
SCRIPT_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def policy(scripts: Sequence[str]) -> str:
    """A content security policy under which these scripts run, nothing else does, and nothing is fetched."""
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def embedded(value: object) -> str:
    """JSON that no text inside it can break out of."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(SCRIPT_SAFE)


def asset(name: str) -> str:
    return (files("trainmark.view") / "assets" / name).read_text(encoding="utf-8")


def frame(style: str = "", script: str = "") -> dict[str, str]:
    """Return style, scripts and policy, by the names that the templates have for them.

    A page with a `style` and a `script` of its own has these assets beside those of every page.
    """
    scripts = {"trap": asset("trap.js"), "table_script": asset("tables.js"), "script": asset("report.js")}
    if script:
        scripts["own_script"] = asset(script)
    shown = {name: Markup(text) for name, text in scripts.items()}
    styles = asset("report.css") + (asset(style) if style else "")
    return {"policy": policy(list(scripts.values())), "style": Markup(styles), **shown}
