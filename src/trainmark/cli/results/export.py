"""`trainmark export`: a run in the forms that others' tools read."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.cli.common.complete import complete_run
from trainmark.cli.common.damage import tell_damage
from trainmark.cli.common.options import json_option, runs_option

TARGETS = ("dllogger", "mllog", "airank", "dlperf", "csv", "tensorboard", "mlflow", "junit")


@click.command("export", short_help="Export a run in the forms that other tools read.")
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
    from trainmark.report.export.export import Baseline, export
    from trainmark.report.format.number import counted
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
