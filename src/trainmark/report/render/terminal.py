"""Result lines for a terminal: one line a result, columns aligned, the doubts at the end."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Result
from trainmark.report.document import Document
from trainmark.report.format import label, number
from trainmark.report.format.table import Table
from trainmark.report.format.words import words
from trainmark.report.sections import cost, finish, framework_cells, light
from trainmark.report.sections.frameworks import FrameworkTable, tables_of
from trainmark.visible import one_line
from trainmark.workloads import registry

RIGHT_ALIGNED = frozenset({4, 8})


def result_lines(results: Sequence[Result], width: int | None = None) -> list[str]:
    """`pytorch  amp/dynamic  b256  1n8g  6,154.7 img/s  [6,130, 6,173]  n=6  ×7.67 [7.61, 7.71]  96 %`."""
    names = label.distinguishing(result.key for result in results)
    return Table((), [_cells(result, names) for result in results], RIGHT_ALIGNED).lines(width)


def document_lines(document: Document, width: int | None = None) -> list[str]:
    """The results, and under them times to train, shares of light and frameworks where there are any."""
    lines = [*result_lines(document.results, width), *finish_lines(document.results, width)]
    lines += light_lines(document, width)
    for table in tables_of(document):
        lines += ["", *framework_lines(table, width)]
    if costs := cost.cost_table(document, words("en")):
        lines += ["", *costs.lines(width), one_line(cost.cost_note(document, words("en")))]
    return lines


def finish_lines(results: Sequence[Result], width: int | None = None) -> list[str]:
    """Times to train under an empty line and their title; nothing where nothing was trained to an end."""
    rows, t = finish.finish_rows(results), words("en")
    if not rows:
        return []
    targets = finish.targets(rows)
    title = f"{t['finish']} ({targets})" if targets else t["finish"]
    return ["", one_line(title), *finish.table(rows, "en").lines(width)]


def light_lines(document: Document, width: int | None = None) -> list[str]:
    """Shares of light under an empty line, their title and what they are shares of; often nothing."""
    rows, t = light.light_rows(document), words("en")
    if not rows:
        return []
    return ["", t["light"], *light.table(rows, t).lines(width), one_line(light.note(rows, t))]


def framework_lines(table: FrameworkTable, width: int | None = None) -> list[str]:
    t = words("en")
    # The doubts stand in the lines above.
    cells = framework_cells.table(table, "en", without=("doubts",))
    notes = (
        t["differs"].format(framework=name, differs="; ".join(mark.differs)) for name, mark in table.unlike
    )
    title = f"{t['frameworks']}: {one_line(table.name)}"
    return [title, *cells.lines(width), *map(one_line, notes)]


def _cells(result: Result, names: tuple[str, ...]) -> list[str]:
    key, speedup, efficiency = result.key, result.speedup, result.efficiency
    unit = label.rate_unit(registry.short_unit(result.unit))
    codes = ", ".join(doubt.code.value for doubt in result.doubts)
    return [
        label.framework(key),
        label.precision(key),
        label.batch(key),
        " ".join(filter(None, (key.topology, label.extras(key, names)))),
        f"{number.throughput(result.throughput)} {unit}",
        number.interval(result.interval) if result.interval else "[no interval]",
        f"n={result.n}",
        _speedup(speedup.value, number.ratio_interval(speedup.interval)) if speedup else "× n/a",
        number.percent(efficiency.value, 0) if efficiency else number.MISSING,
        f" ! {codes}" if codes else "",
    ]


def _speedup(value: float, bounds: str) -> str:
    return f"×{number.ratio(value)}" + ("" if bounds == number.MISSING else f" {bounds}")
