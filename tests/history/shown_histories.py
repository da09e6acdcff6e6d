"""A history as its page is shown."""

from trainmark.pages.history_page import STYLE, history_page, no_report
from trainmark.view import html, markdown, terminal


def as_text(shown, detailed=False, lang="en"):
    return terminal.render(history_page(shown, detailed), lang)


def as_markdown(shown, detailed=False, lang="en"):
    return markdown.render(history_page(shown, detailed), lang)


def as_page(shown, lang="en", report_link=no_report):
    return html.render(history_page(shown, report_link=report_link), lang, STYLE)
