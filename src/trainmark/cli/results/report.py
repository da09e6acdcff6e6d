"""`trainmark report`: a run as Markdown, HTML, JSON or CSV."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.complete import complete_run
from trainmark.cli.common.damage import tell_damage
from trainmark.cli.common.options import price_option, runs_option
from trainmark.cli.common.terminal import terminal_width, unfiltered

if TYPE_CHECKING:
    from trainmark.measure.cost import Price
    from trainmark.report.document import Document
    from trainmark.report.format.words import Lang

FORMATS = ("md", "html", "json", "csv", "text")


@click.command("report", short_help="Write a run's report as HTML, Markdown, JSON and CSV.")
@click.argument("run", default="latest", shell_complete=complete_run)
@runs_option
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Print one format instead of writing all.")
@click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", help="The language of md, html and text."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file (with --format) or folder.")
@click.option("--open", "shown", is_flag=True, help="Show the page in a browser.")
@price_option
def report_command(
    run: str, runs: Path, kind: str | None, lang: str, out: Path | None, shown: bool, price: Price | None
) -> int:
    """Report RUN (a name, a path or `latest`): every figure with its interval, environment and doubts.

    \b
    Examples:
      trainmark report                               all formats, into the run's folder
      trainmark report latest --open                 and show it in a browser
      trainmark report latest --format json          for scripts
      trainmark report latest --price 2.50/h         with the cost of a million samples
      trainmark report before --lang zh --format md --out before.zh.md
    """
    from trainmark.report.assemble import document_of
    from trainmark.store.run import find_run

    folder = find_run(run, runs)
    document = replace(document_of(folder), price=price)
    tell_damage(folder)
    if shown and kind is not None:
        raise click.UsageError("--open shows the page of all formats; leave out --format")
    if kind is not None and out is None:
        # A page is for a browser, and its scripts hold such characters as others must not see.
        out_stream = unfiltered(sys.stdout) if kind == "html" else None
        click.echo(render(document, kind, lang, terminal_width()), nl=False, file=out_stream)
        return 0
    try:
        if kind is None or out is None:
            written = write_reports(document, out or folder.path, lang)
        else:
            out.write_text(render(document, kind, lang), encoding="utf-8")
            written = {kind: out}
    except OSError as error:
        raise click.ClickException(
            f"the report cannot be written to {error.filename}: {error.strerror}."
        ) from error
    for name, path in written.items():
        click.echo(f"{name:<9} {path}")
    if shown and (page := written.get("html")) and not opened(page):
        click.echo(f"There is no browser here; open {page.resolve().as_uri()} in one.", err=True)
    if document.trials and (document.damaged or not document.results):
        click.echo("\n".join(["", *result_lines(document, None)]))
    return 0


def opened(page: Path) -> bool:
    """Whether a browser with a window shows it: one in the terminal would take that over."""
    import os
    import webbrowser

    has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_screen and webbrowser.open(page.resolve().as_uri())


def render(document: Document, kind: str, lang: str, width: int | None = None) -> str:
    from trainmark.report.render import csv_report, html, json_report, markdown

    language: Lang = "zh" if lang == "zh" else "en"
    if kind == "md":
        return markdown.render(document, language)
    if kind == "html":
        return html.render(document, language)
    if kind == "csv":
        return csv_report.render(document)
    if kind == "text":
        return "\n".join(result_lines(document, width, language)) + "\n"
    return json_report.render(document)


def write_reports(document: Document, folder: Path, lang: str = "en") -> dict[str, Path]:
    """All formats into one folder; English has the plain names, another language its suffix."""
    from trainmark.store.files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    suffix = "" if lang == "en" else f".{lang}"
    paths = {
        "html": folder / f"report{suffix}.html",
        "md": folder / f"report{suffix}.md",
        "json": folder / "report.json",
        "csv": folder / "report.csv",
    }
    for kind, path in paths.items():
        write_text(path, render(document, kind, lang))
    return paths


def result_lines(document: Document, width: int | None, lang: Lang = "en") -> list[str]:
    from trainmark.report.render import terminal as text

    return text.document_lines(document, width, lang)
