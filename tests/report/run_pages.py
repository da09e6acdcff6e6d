"""The page of a run in each medium, and its words in Chinese."""

from __future__ import annotations

from trainmark.pages.run.page import run_page
from trainmark.store.report import RunReport
from trainmark.view import html, markdown, terminal
from trainmark.view.blocks import Block, Chart, Charts, Section
from trainmark.view.catalogue import Lang, catalogue
from trainmark.view.chart.model import Plot


def as_html(report: RunReport, lang: Lang = "en") -> str:
    return html.render(run_page(report), lang)


def as_markdown(report: RunReport, lang: Lang = "en") -> str:
    return markdown.render(run_page(report), lang)


def as_lines(report: RunReport, lang: Lang = "en") -> list[str]:
    return terminal.render(run_page(report), lang).splitlines()


def in_language(text: str, lang: Lang) -> str:
    """Return a message of the package, its values left open."""
    return text if lang == "en" else catalogue(lang)[text]


def plots(report: RunReport) -> dict[str, Plot]:
    """Return the plots of a page by their names."""
    return {plot.name: plot for block in run_page(report).blocks for plot in _plots(block)}


def _plots(block: Block) -> list[Plot]:
    if isinstance(block, Chart):
        return [block.plot]
    if isinstance(block, Charts):
        return [chart.plot for chart in block.charts]
    if isinstance(block, Section):
        return [plot for each in block.blocks for plot in _plots(each)]
    return []
