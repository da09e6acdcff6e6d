"""`trainmark show`: one run or one trial, in the terminal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.complete import complete_run, complete_trial
from trainmark.cli.common.damage import tell_damage
from trainmark.cli.common.options import json_option, runs_option
from trainmark.cli.common.terminal import terminal_width
from trainmark.visible import one_line

if TYPE_CHECKING:
    from trainmark.measure.figure import Finish
    from trainmark.store.run import RunFolder
    from trainmark.store.trial import TrialRecord


@click.command("show", short_help="Show one run, or one trial with the end of its log.")
@click.argument("run", default="latest", shell_complete=complete_run)
@click.argument("trial", required=False, shell_complete=complete_trial)
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
    code = _trial(folder, trial, as_json) if trial else _run(folder, as_json)
    tell_damage(folder)
    return code


def _run(run: RunFolder, as_json: bool) -> int:
    from trainmark.cli.common.live import finish_words
    from trainmark.report.assemble import results_of
    from trainmark.report.format.number import counted
    from trainmark.report.render.terminal import finish_lines, result_lines, utilisation_lines
    from trainmark.store.overview import run_row, trial_rows

    records = run.records()
    info, row = run.info, run_row(run, records)
    trials = trial_rows(run, records)
    if as_json:
        skipped = [{"case": case, "reason": reason} for case, reason in info.skipped]
        damaged = [asdict(damage) for damage in run.damaged.values()]
        click.echo(json.dumps({**row, "trials": trials, "skipped": skipped, "damaged": damaged}, indent=2))
        return 0
    planned = counted(row["least"], "trial")
    click.echo(f"{info.name}: {info.about}\n{info.command}\n{row['status']}, {row['ok']} of {planned}\n")
    results, width = results_of(records), terminal_width()
    sections = (result_lines, finish_lines, utilisation_lines)
    for line in (line for section in sections for line in section(results, width)):
        click.echo(line)
    click.echo()
    for trial, record in zip(trials, records, strict=True):
        summary = f"{trial['throughput']:,.2f} {trial['unit']}" if trial["throughput"] else trial["detail"]
        if record.figure and record.figure.finish:
            summary = f"{finish_words(record.figure.finish)}, {summary}"
        click.echo(f"{trial['case']}/{trial['repeat']:02d}  {trial['outcome']:<11} {one_line(str(summary))}")
    for case, reason in info.skipped:
        click.echo(f"{one_line(case)}  skipped     {one_line(reason)}")
    return 0


def _trial(run: RunFolder, name: str, as_json: bool) -> int:
    from trainmark.launch.job.log_tail import tail
    from trainmark.report.format.value import readable
    from trainmark.store.files import StoreError
    from trainmark.store.overview import trial_rows

    wanted = Path(name).parts
    records = [
        each
        for each in run.records()
        if wanted in {(case, f"{each.spec.repeat:02d}") for case in _names(each)}
    ]
    if not records:
        tell_damage(run)
        raise StoreError(f"there is no finished trial '{name}' in {run.trials}; `trainmark show` lists them.")
    (record,) = records
    folder = run.trials / record.spec.case / f"{record.spec.repeat:02d}"
    (row,) = trial_rows(run, records)
    if as_json:
        click.echo(json.dumps({**row, "command": record.spec.command, "folder": str(folder)}, indent=2))
        return 0
    for key, value in row.items():
        if value not in (None, ""):
            click.echo(f"{key.replace('_', ' '):<20} {one_line(readable(key, value))}")
    if record.figure and record.figure.finish:
        _finish(record.figure.finish, record.figure.unit)
    for doubt in record.figure.doubts if record.figure else ():
        click.echo(f"{'! ' + doubt.code.value:<20} {doubt.message}")
    for retry in record.retries:
        click.echo(f"{'retried after':<20} {retry}")
    click.echo(f"{'command':<20} {record.spec.command}\n{'folder':<20} {folder}")
    for log in sorted((folder / "logs").glob("rank*.log")):
        if last := tail(log).strip():
            click.echo(f"\n── the end of {log.name} ──\n" + "\n".join(last.splitlines()[-15:]))
    return 0


def _names(record: TrialRecord) -> tuple[str, str]:
    """Of its case: the folder's, and that with the ranks that a program turned out to start."""
    return record.spec.case, record.spec.case.replace("-1n1g", f"-{record.key.topology}")


def _finish(finish: Finish, unit: str) -> None:
    """What the clocks of a training say, and its evaluations."""
    from trainmark.cli.common.live import finish_words, scores_words
    from trainmark.cli.common.screen import clock
    from trainmark.metric import score

    spent = {
        "evaluations": finish.evaluation_seconds,
        "checkpoints": finish.checkpoint_seconds,
        "lost to kills": finish.lost_seconds,
    }
    facts = {
        "finish": finish_words(finish),
        "AI-Rank's clock": None if finish.airank_seconds is None else clock(finish.airank_seconds),
        "whole training": clock(finish.seconds),
        "of it": ", ".join(f"{name} {clock(seconds)}" for name, seconds in spent.items() if seconds) or None,
        "training alone": _rate(finish.train_rate or finish.first_epoch_rate, unit),
        "with evaluation": _rate(finish.whole_rate, unit),
    }
    for name, value in facts.items():
        if value is not None:
            click.echo(f"{name:<20} {value}")
    for each in finish.evaluations:
        values = ((metric, score(each.scores, metric)) for metric in finish.metrics)
        scores = "  ".join(scores_words((metric, value) for metric, value in values if value is not None))
        click.echo(f"{f'epoch {each.epoch + 1}':<20} {scores}  after {clock(each.end)}, step {each.step:,}")


def _rate(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:,.2f} {unit}/s"
