"""`trainmark show`: one run or one trial, in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.cli.options import json_option, runs_option


@click.command("show")
@click.argument("run", default="latest")
@click.argument("trial", required=False)
@runs_option
@json_option
def show_command(run: str, trial: str | None, runs: Path, as_json: bool) -> int:
    """Show RUN: its results, its trials, what was skipped; or one TRIAL of it, with the end of its log.

    \b
    Examples:
      trainmark show latest
      trainmark show latest pytorch-fp32-b4-1n2g-s64/03
    """
    from trainmark.store.run import find_run

    folder = find_run(run, runs)
    return _trial(folder.trials, trial, as_json) if trial else _run(folder.path, as_json)


def _run(path: Path, as_json: bool) -> int:
    from trainmark.report.assemble import results_of
    from trainmark.report.text import result_lines
    from trainmark.store.overview import run_row, trial_row
    from trainmark.store.run import RunFolder

    run = RunFolder(path)
    info, row = run.info, run_row(run)
    trials = [trial_row(info.name, record) for record in run.records()]
    if as_json:
        skipped = [{"case": case, "reason": reason} for case, reason in info.skipped]
        click.echo(json.dumps({**row, "trials": trials, "skipped": skipped}, indent=2))
        return 0
    click.echo(
        f"{info.name}: {info.about}\n{info.command}\n{row['status']}, {row['ok']} of {row['least']} trials\n"
    )
    for line in result_lines(results_of(run)):
        click.echo(line)
    click.echo()
    for trial in trials:
        said = f"{trial['throughput']:,.2f} {trial['unit']}" if trial["throughput"] else trial["detail"]
        click.echo(f"{trial['case']}/{trial['repeat']:02d}  {trial['outcome']:<11} {said}")
    for case, reason in info.skipped:
        click.echo(f"{case}  skipped     {reason}")
    return 0


def _trial(trials: Path, name: str, as_json: bool) -> int:
    from trainmark.runner.trial import tail
    from trainmark.store.files import StoreError
    from trainmark.store.overview import trial_row
    from trainmark.store.trial import FIGURE, read_trial

    folder = trials / name
    if ".." in folder.parts or not (folder / FIGURE).is_file():
        raise StoreError(f"there is no finished trial '{name}' in {trials}; `trainmark show` lists them.")
    record = read_trial(folder)
    row = trial_row(trials.parent.name, record)
    if as_json:
        click.echo(json.dumps({**row, "command": record.spec.command, "folder": str(folder)}, indent=2))
        return 0
    for key, value in row.items():
        if value not in (None, ""):
            click.echo(f"{key.replace('_', ' '):<20} {value}")
    for doubt in record.figure.doubts if record.figure else ():
        click.echo(f"{'! ' + doubt.code.value:<20} {doubt.message}")
    for retry in record.retries:
        click.echo(f"{'retried after':<20} {retry}")
    click.echo(f"{'command':<20} {record.spec.command}\n{'folder':<20} {folder}")
    for log in sorted((folder / "logs").glob("rank*.log")):
        if last := tail(log).strip():
            click.echo(f"\n── the end of {log.name} ──\n" + "\n".join(last.splitlines()[-15:]))
    return 0
