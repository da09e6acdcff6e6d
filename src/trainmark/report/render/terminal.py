"""Result lines for a terminal: one line a result, columns aligned, the doubts at the end."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.base.text import one_line
from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.report.answer.answer import Answer, answer, headline_lines
from trainmark.report.document import Document
from trainmark.report.format.doubt_words import doubt_name
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, words
from trainmark.report.sections import cost, finish, framework_cells, light, utilisation
from trainmark.report.sections.contrast import contrast_table
from trainmark.report.sections.frameworks import FrameworkTable, tables_of
from trainmark.report.sections.group import failures
from trainmark.workloads import registry

RIGHT_ALIGNED = frozenset({4, 8})


def result_lines(results: Sequence[Result], width: int | None = None) -> list[str]:
    """`pytorch  amp/dynamic  b256  1n8g  6,154.7 img/s  [6,130, 6,173]  n=6  ×7.67 [7.61, 7.71]  96 %`."""
    names = label.distinguishing(result.key for result in results)
    return Table((), [_cells(result, names) for result in results], RIGHT_ALIGNED).lines(width)


def document_lines(document: Document, width: int | None = None, lang: Lang = "en") -> list[str]:
    """The answer; then the results, times to train, shares of light and frameworks where there are any.

    Without any result, why the trials failed.
    """
    if not document.results and document.trials:
        return failure_lines(document)
    shown = answer(document, lang)
    compared = contrast_table(document, lang)
    results = compared.lines(width) if compared else result_lines([row.result for row in shown.rows], width)
    lines = [*answer_lines(shown, lang), "", *results]
    lines += doubt_lines(shown, lang)
    lines += [*finish_lines(document.results, width), *light_lines(document, width)]
    lines += utilisation_lines(document.results, width)
    for table in tables_of(document):
        lines += ["", *framework_lines(table, width)]
    if costs := cost.cost_table(document, words("en")):
        lines += ["", *costs.lines(width), one_line(cost.cost_note(document, words("en")))]
    return lines


def answer_lines(shown: Answer, lang: Lang = "en") -> list[str]:
    """What was measured, the figures, and the verdict."""
    lines = (shown.subject, *headline_lines(shown, lang), shown.verdict, *shown.sources)
    return [one_line(line) for line in lines if line]


def doubt_lines(shown: Answer, lang: Lang = "en") -> list[str]:
    """What each doubt says, under an empty line."""
    lines = [f"! {doubt_name(note.code, lang)}: {line}" for note in shown.doubts for line in note.lines]
    return ["", *map(one_line, lines)] if lines else []


def failure_lines(document: Document) -> list[str]:
    """`no trial succeeded:`, then each case with what its trials ended in, and where to look on."""
    causes = failures(document.trials)
    lines = [
        f"{failure.case}: {len(failure.repeats)} × {failure.outcome}: {failure.detail or 'reason unknown'}"
        for failure in causes
    ]
    first = f"trainmark show {document.name} {causes[0].case}/{causes[0].repeats[0]:02d}"
    return [
        "no trial succeeded:",
        *(f"  {one_line(line)}" for line in lines),
        f"the end of its log: `{one_line(first)}`",
    ]


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


def utilisation_lines(results: Sequence[Result], width: int | None = None) -> list[str]:
    """MFU, HFU, memory and energy, and other codes' MFU; nothing where no result has their conventions."""
    rows, t = utilisation.named_results(results), words("en")
    if not rows:
        return []
    figures, conventions = utilisation.figures_table(rows, t), utilisation.conventions_table(rows, t)
    return [
        *("", t["arithmetic"], *figures.lines(width)),
        *("", t["conventions"], *conventions.lines(width), t["conventions_note"]),
    ]


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
    key = result.key
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
        # A program is run as its user starts it: there is no trial of it on one device.
        *(_ratios(result) if key.devices > 1 and (result.speedup or key.framework) else ("", "")),
        f" ! {codes}" if codes else "",
    ]


def _ratios(result: Result) -> tuple[str, str]:
    """Speed-up and efficiency; over itself, a single device has neither."""
    speedup, efficiency = result.speedup, result.efficiency
    if speedup is None:
        return "× n/a", number.MISSING
    bounds = number.ratio_interval(speedup.interval)
    shown = f"×{number.ratio(speedup.value)}" + ("" if bounds == number.MISSING else f" {bounds}")
    return shown, number.percent(efficiency.value, 0) if efficiency else number.MISSING
