"""The ledger as one HTML file that needs no network: a plot and the rows behind it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from trainmark.base.text import one_line
from trainmark.logs.ledger.entry import LedgerEntry
from trainmark.report.format import templating
from trainmark.report.format.page import embedded, frame
from trainmark.report.ledger.plot import FEWEST_DRAWN, plot
from trainmark.report.ledger.rows import COLUMNS, NUMERIC, payload


def render(entries: Sequence[LedgerEntry]) -> str:
    drawn = plot(entries)
    env = templating.environment("en", html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("ledger.html.j2").render(
        entries=entries,
        origins={entry.source: entry.origin for entry in entries},
        plot=drawn,
        fewest=FEWEST_DRAWN,
        columns=COLUMNS,
        numeric=NUMERIC,
        rows=Markup(embedded(payload(entries))),
        **frame(),
        at_first=len(drawn.legend) if drawn else 0,
    )
