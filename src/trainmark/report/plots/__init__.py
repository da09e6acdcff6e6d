"""The plots of a report as charts, each with the data behind it."""

from __future__ import annotations

from trainmark.report.document import Document
from trainmark.report.plots import axis, frameworks, samples, scaling, speedup, spread, steps, training
from trainmark.report.sections.frameworks import tables_of
from trainmark.report.sections.group import by_series
from trainmark.report.sections.scaling import scaling_tables
from trainmark.view.chart.model import Plot


def plots(document: Document, t: dict[str, str]) -> dict[str, Plot]:
    """The plots this document has data for, by name."""
    groups = by_series(document.results)
    tables = tables_of(document)
    compared = {row.result.key for table in tables for row in table.rows}
    # Where every series stands among the frameworks, one plot of them all would only show it again.
    others = () if compared.issuperset(result.key for result in document.results) else groups
    drawn = (
        training.plot(document.curves, t),
        frameworks.bars(tables, t),
        frameworks.scaling(tables, t),
        axis.plot(document.results, t),
        scaling.throughput(others, t),
        scaling.efficiency(others, t),
        speedup.plot(scaling_tables(document.results, t), t),
        steps.plot(document.traces, t),
        spread.plot(groups, t),
        samples.plot(document.samples, t),
    )
    return {plot.name: plot for plot in drawn if plot is not None}
