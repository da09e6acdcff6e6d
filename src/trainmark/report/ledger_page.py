"""The ledger as one HTML file that needs no network: a plot and the rows behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from markupsafe import Markup

from trainmark.ledger.entry import Entry
from trainmark.report import templating
from trainmark.report.ledger_plot import plot
from trainmark.report.page import asset, embedded, plotly_js, policy
from trainmark.report.plots.plot import TONES
from trainmark.report.visible import one_line


def render(entries: Sequence[Entry]) -> str:
    scripts = [asset("trap.js"), plotly_js(), asset("report.js")]
    drawn = plot(entries)
    env = templating.environment("en", html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("ledger.html.j2").render(
        entries=entries,
        origins={entry.source: entry.origin for entry in entries},
        plot=drawn,
        payload=Markup(embedded({drawn.name: asdict(drawn)} if drawn else {})),
        policy=policy(scripts),
        style=Markup(asset("report.css")),
        trap=Markup(scripts[0]),
        plotly=Markup(scripts[1]),
        script=Markup(scripts[2]),
        tones=TONES,
    )
