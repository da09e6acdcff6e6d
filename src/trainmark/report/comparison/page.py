"""Runs against a baseline as one HTML file: the verdict, the ratios drawn, and every figure."""

from __future__ import annotations

from trainmark.base.text import one_line
from trainmark.report.chart.axis import linear, rows
from trainmark.report.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Whiskers, shape, tone
from trainmark.report.comparison.model import MARKS, MEANING, ComparisonRow, Comparisons
from trainmark.report.comparison.text import (
    PEAK_NOTE,
    cost_table,
    interval,
    peaks_table,
    published,
    rows_table,
)
from trainmark.report.format import number, templating
from trainmark.report.format.page import frame
from trainmark.report.sections import framework_cells

ROW, LANE = 30, 12
AIR = 0.1


def render(comparisons: Comparisons) -> str:
    env = templating.environment("en", html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("comparison.html.j2").render(
        **frame(),
        comparisons=comparisons,
        plot=plot(comparisons),
        several=len(comparisons.tables) > 1,
        table=rows_table(comparisons),
        costs=cost_table(comparisons),
        peaks=peaks_table(comparisons),
        peak_note=PEAK_NOTE,
        meaning=MEANING,
        alone=comparisons.alone,
        published=published(comparisons),
        frameworks=[(table.name, framework_cells.table(table, "en")) for table in comparisons.frameworks],
        at_first=len(comparisons.tables),
    )


def plot(comparisons: Comparisons, axis: str = "throughput ÷ baseline") -> Plot | None:
    """The ratio of each case to the baseline with its interval, a lane a run."""
    grid = comparisons.grid()
    if not grid:
        return None
    lanes = len(comparisons.tables)
    marks: list[Mark] = [Line("muted", x=[1, 1], y=[-0.5, len(grid) - 0.5], dash=True)]
    reach = [1.0]
    for column, table in enumerate(comparisons.tables):
        members = [(place, cells[column]) for place, (_, cells) in enumerate(grid)]
        known = [(place + 0.6 * ((column + 0.5) / lanes - 0.5), row) for place, row in members if row]
        sure = [(at, row) for at, row in known if row.low is not None and row.high is not None]
        low, high = [row.low for _, row in sure], [row.high for _, row in sure]
        series, colour = str(column), tone(column)
        marks.append(Whiskers(colour, series, at=[at for at, _ in sure], low=low, high=high, flat=True))
        marks.append(
            Dots(
                colour,
                series,
                x=[row.ratio for _, row in known],
                y=[at for at, _ in known],
                texts=[_tip(row) for _, row in known],
                name=table.after,
                shape=shape(column),
                radius=4,
            )
        )
        reach += [row.ratio for _, row in known] + [bound for bound in (*low, *high) if bound is not None]
    air = AIR * (max(reach) - min(reach)) or AIR
    bounds = (max(0.0, min(reach) - air), max(reach) + air)
    across = linear([], axis, bounds=bounds, most=9)
    names = rows([known.case for known, _ in grid])
    panel = Panel(names, marks, len(grid) * max(ROW, LANE * lanes + 10))
    return Plot("ratios", [Figure("", {"": Chart(across, [panel])})], list(comparisons.runs[1:]))


def _tip(row: ComparisonRow) -> str:
    figure = f"{number.throughput(row.after)} {row.unit}, ×{row.ratio:.3f} {interval(row)}"
    return f"{row.case}: {figure}, {MARKS[row.mark]}"
