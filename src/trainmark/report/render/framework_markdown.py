"""The notes under a comparison of frameworks, as Markdown, and the table for the comparison of two runs."""

from __future__ import annotations

from trainmark.logs.ledger.standing import in_words
from trainmark.pages.comparison import Frameworks
from trainmark.report.format.published_words import LANGUAGES
from trainmark.report.format.words import Lang, words
from trainmark.report.render.json_report import table_tree
from trainmark.report.sections import framework_cells
from trainmark.report.sections.frameworks import FrameworkTable
from trainmark.view import blocks
from trainmark.view.blocks import Section
from trainmark.view.markup import plain
from trainmark.view.message import _


def notes(frameworks: FrameworkTable, lang: Lang = "en") -> str:
    differs = words(lang)["differs"]
    lines = [
        differs.format(framework=plain(name), differs=plain("; ".join(mark.differs)))
        for name, mark in frameworks.unlike
    ]
    lines += [
        f"{plain(row.name)} {row.result.key.topology}: {plain(in_words(row.published, LANGUAGES[lang]))}"
        for row in frameworks.rows
        if row.published
    ]
    return "<br>\n".join(lines)


def frameworks_in(frameworks: FrameworkTable) -> Frameworks:
    """Return one case in several frameworks for the page and the JSON of a comparison."""
    cells = framework_cells.table(frameworks, "en")
    unlike = [
        words("en")["differs"].format(framework=name, differs="; ".join(mark.differs))
        for name, mark in frameworks.unlike
    ]
    published = [
        f"{row.name} {row.result.key.topology}: {in_words(row.published)}"
        for row in frameworks.rows
        if row.published
    ]
    table = blocks.Table(cells.header, cells.rows, cells.right, notes=[*unlike, *published])
    return Frameworks(Section(_("Frameworks: {case}", case=frameworks.name), [table]), table_tree(frameworks))
