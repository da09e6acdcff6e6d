"""`trainmark report` and `export`: a run as pages, and in the forms that other tools read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.complete import complete_run
from trainmark.cli.options import json_option, lang_option, price_option, runs_option, tell_damage
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.measure.cost import Price
    from trainmark.store.report import RunReport
    from trainmark.view.catalogue import Lang


FORMATS = ("md", "html", "json", "csv", "text")


@click.command("report")
@click.argument("run", default="latest", shell_complete=complete_run)
@runs_option
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Print one format instead of writing all.")
@lang_option
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file (with --format) or folder.")
@click.option("--open", "shown", is_flag=True, help="Show the page in a browser.")
@price_option
def report_command(
    run: str, runs: Path, kind: str | None, lang: Lang, out: Path | None, shown: bool, price: Price | None
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
    from trainmark.store.report import report_of
    from trainmark.store.run import find_run

    folder = find_run(run, runs)
    report = report_of(folder, price)
    tell_damage(folder)
    if shown and kind is not None:
        raise click.UsageError("--open shows the page of all formats; leave out --format")
    if kind is not None and out is None:
        deliver(render(report, kind, lang, terminal_width()), kind, None)
        return 0
    try:
        if kind is None or out is None:
            written = write_reports(report, out or folder.path, lang)
        else:
            out.write_text(render(report, kind, lang), encoding="utf-8")
            written = {kind: out}
    except OSError as error:
        raise click.ClickException(
            f"the report cannot be written to {error.filename}: {error.strerror}."
        ) from error
    for name, path in written.items():
        click.echo(f"{name:<9} {path}")
    if shown and (page := written.get("html")) and not opened(page):
        click.echo(f"There is no browser here; open {page.resolve().as_uri()} in one.", err=True)
    if report.trials and (report.damaged or not report.results):
        click.echo("\n" + render(report, "text"), nl=False)
    return 0


def opened(page: Path) -> bool:
    """Whether a browser with a window shows it: one in the terminal would take that over."""
    import os
    import webbrowser

    has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_screen and webbrowser.open(page.resolve().as_uri())


def render(report: RunReport, kind: str, lang: Lang = "en", width: int | None = None) -> str:
    from trainmark.pages.run.csv_table import run_csv
    from trainmark.pages.run.page import run_page
    from trainmark.pages.run.record import run_json

    if kind in ("csv", "json"):
        return run_csv(report) if kind == "csv" else run_json(report)
    return rendered(run_page(report), kind, lang, width)


def write_reports(report: RunReport, folder: Path, lang: Lang = "en") -> dict[str, Path]:
    """All formats into one folder; English has the plain names, another language its suffix."""
    from trainmark.base.files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    suffix = "" if lang == "en" else f".{lang}"
    paths = {
        "html": folder / f"report{suffix}.html",
        "md": folder / f"report{suffix}.md",
        "json": folder / "report.json",
        "csv": folder / "report.csv",
    }
    for kind, path in paths.items():
        write_text(path, render(report, kind, lang))
    return paths


TARGETS = ("dllogger", "mllog", "airank", "dlperf", "csv", "tensorboard", "mlflow", "junit")


@click.command("export")
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--to", "target", type=click.Choice(TARGETS), required=True, help="The form to write.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The folder to make.  [default: RUN/export/FORM]"
)
@click.option(
    "--submitter", default="trainmark", show_default=True, help="Who submits: airank, mllog, mlflow."
)
@click.option(
    "--baseline", metavar="RUN", shell_complete=complete_run,
    help="junit: a case that is surely slower than in this run is a failure, or skipped where a severe doubt"
    " leaves it open.",
)  # fmt: skip
@click.option(
    "--fail-below", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True,
    help="With --baseline: only where after/before is less.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an earlier export in that folder.")
@runs_option
@json_option
def export_command(
    run: str,
    target: str,
    out: Path | None,
    submitter: str,
    baseline: str | None,
    fail_below: float,
    force: bool,
    runs: Path,
    as_json: bool,
) -> int:
    """Export RUN (a name, a path or `latest`) as logs, tables or stores that other tools read.

    \b
    Examples:
      trainmark export latest --to mllog --submitter "My Lab"
      trainmark export before --to dlperf --out logs/before
      trainmark export latest --to tensorboard --out tb    then: tensorboard --logdir tb
      trainmark export latest --to csv --force --json
      trainmark export latest --to junit --baseline main --fail-below 0.97
    """
    from trainmark.pages.export.export import Baseline, export
    from trainmark.pages.number import counted
    from trainmark.store.run import find_run

    folder = find_run(run, runs)
    place = out or folder.path / "export" / target
    if baseline is not None and target != "junit":
        raise click.UsageError("--baseline goes with --to junit.")
    compared = Baseline(find_run(baseline, runs), fail_below) if baseline is not None else None
    done = export(folder, target, place, submitter, force, compared)
    tell_damage(folder)
    if as_json:
        skipped = [{"trial": trial, "reason": reason} for trial, reason in done.skipped]
        summary = {"run": folder.path.name, "to": target, "out": str(done.out), "files": done.files}
        click.echo(json.dumps({**summary, "skipped": skipped}, indent=2))
        return 0
    for trial, reason in done.skipped:
        click.echo(f"left out  {trial}: {reason}", err=True)
    click.echo(f"{target:<11} {done.out}  ({counted(len(done.files), 'file')})")
    return 0
