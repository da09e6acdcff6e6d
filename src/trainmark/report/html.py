"""The report as one HTML file that needs no network: figures, plots, and the library that draws them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

from trainmark.errors import UserError
from trainmark.ledger.words import in_words
from trainmark.measure.figure import Result
from trainmark.report import templating
from trainmark.report.document import Document
from trainmark.report.environment import sections
from trainmark.report.frameworks import published_figure, tables_of
from trainmark.report.group import by_case, by_series, failures, headlines
from trainmark.report.plots import plots
from trainmark.report.plots.frameworks import SERIES
from trainmark.report.plots.plot import AT_FIRST, TONES
from trainmark.report.prose import method, summary
from trainmark.report.visible import one_line, visible
from trainmark.report.words import Lang, words

# Inside a script element only these can end it early or start a comment; JSON reads the escapes back.
SCRIPT_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
LONG_TABLE = 40


def render(document: Document, lang: Lang = "en") -> str:
    t = words(lang)
    scripts = [asset("trap.js"), plotly_js(), asset("report.js")]
    groups = by_series(document.results)
    drawn = plots(document, t)
    env = templating.environment(lang, html=True)
    env.filters.update(visible=visible, one_line=one_line)
    return env.get_template("report.html.j2").render(
        document=document,
        summary=summary(document, lang),
        method=method(document, lang),
        policy=policy(scripts),
        style=Markup(asset("report.css")),
        trap=Markup(scripts[0]),
        plotly=Markup(scripts[1]),
        script=Markup(scripts[2]),
        plots=drawn,
        payload=Markup(embedded({name: asdict(plot) for name, plot in drawn.items()})),
        frameworks=tables_of(document),
        published_figure=published_figure,
        in_words=in_words,
        series=SERIES,
        groups=groups,
        headlines=headlines(groups),
        columns=columns(document.results),
        environment=sections(document.environment),
        cases=by_case(document.trials),
        failures=failures(document.trials),
        long=LONG_TABLE,
        tones=TONES,
        at_first=AT_FIRST,
    )


def embedded(value: object) -> str:
    """JSON that no text inside it can break out of."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(SCRIPT_SAFE)


def policy(scripts: Sequence[str]) -> str:
    """A content security policy under which these scripts run, nothing else does, and nothing is fetched."""
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def columns(results: Sequence[Result]) -> frozenset[str]:
    """The optional columns for which some result has a figure."""
    known = {
        "data_wait": any(result.data_wait_share is not None for result in results),
        "per_joule": any(result.samples_per_joule is not None for result in results),
        "mfu": any(result.utilisation is not None for result in results),
    }
    return frozenset(name for name, present in known.items() if present)


def asset(name: str) -> str:
    return (files("trainmark.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def plotly_js() -> str:
    try:
        library = files("plotly") / "package_data" / "plotly.min.js"
    except ModuleNotFoundError as error:
        raise UserError("the HTML report draws with plotly; pip install plotly.") from error
    return library.read_text(encoding="utf-8")
