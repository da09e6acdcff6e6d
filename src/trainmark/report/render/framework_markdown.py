"""The notes under a comparison of frameworks, as Markdown."""

from __future__ import annotations

from trainmark.logs.ledger.standing import in_words
from trainmark.report.format.markup import plain
from trainmark.report.format.published_words import LANGUAGES
from trainmark.report.format.words import Lang, words
from trainmark.report.sections.frameworks import FrameworkTable


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
