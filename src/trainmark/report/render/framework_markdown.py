"""The comparison of frameworks as a Markdown table, and what is to be said under it."""

from __future__ import annotations

from trainmark.published.ledger.words import in_words
from trainmark.report.format.markup import plain, table
from trainmark.report.format.words import Lang, words
from trainmark.report.sections.framework_cells import RIGHT_ALIGNED, columns, header
from trainmark.report.sections.frameworks import FrameworkTable


def compared(frameworks: FrameworkTable, lang: Lang = "en") -> str:
    shown = columns(frameworks, lang)
    return table(
        [plain(header(name, frameworks, words(lang))) for name in shown],
        [[cell(row) for cell in shown.values()] for row in frameworks.rows],
        frozenset(place for place, name in enumerate(shown) if name in RIGHT_ALIGNED),
    )


def notes(frameworks: FrameworkTable, lang: Lang = "en") -> str:
    differs = words(lang)["differs"]
    lines = [
        differs.format(framework=plain(name), differs=plain("; ".join(mark.differs)))
        for name, mark in frameworks.unlike
    ]
    lines += [
        f"{plain(row.name)} {row.result.key.topology}: {plain(in_words(row.published))}"
        for row in frameworks.rows
        if row.published
    ]
    return "<br>\n".join(lines)
