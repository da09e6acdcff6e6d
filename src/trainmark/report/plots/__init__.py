"""Figure specifications for plotly.js, written as plain JSON; colours are names of CSS variables."""

from __future__ import annotations

from trainmark.report.document import Document
from trainmark.report.group import by_series
from trainmark.report.plots import samples, scaling, spread, steps
from trainmark.report.plots.plot import Plot


def plots(document: Document, t: dict[str, str]) -> dict[str, Plot]:
    """The plots this document has data for, by name."""
    groups = by_series(document.results)
    drawn = (
        scaling.throughput(groups, t),
        scaling.efficiency(groups, t),
        steps.plot(document.traces, t),
        spread.plot(groups, t),
        samples.plot(document.samples, t),
    )
    return {plot.name: plot for plot in drawn if plot is not None}
