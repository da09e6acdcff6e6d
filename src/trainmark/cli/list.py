"""`trainmark list`, `show` and `query`: the stored runs."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.base.text import one_line
from trainmark.cli.complete import complete_run, complete_trial
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, price_option, runs_option, tell_damage
from trainmark.cli.terminal import terminal_width

if TYPE_CHECKING:
    from trainmark.measure.cost import Price
    from trainmark.measure.figure import Finish
    from trainmark.store.run import RunFolder
    from trainmark.store.trial import TrialRecord


@click.command("list")
@runs_option
@price_option
@json_option
def list_command(runs: Path, price: Price | None, as_json: bool) -> int:
    """List the runs, oldest first, with the progress and the main figure of each.

    The figure is that of the fastest case on the most devices. With --price there is also the cost of a
    million samples, the cost to the finish line where the case was trained to one, and the energy where it
    was measured.

    \b
    Examples:
      trainmark list --price 2.50/h
      trainmark list --json | jq -r '.[-1].name'
    """
    from trainmark.pages.runs import runs_record, runs_table
    from trainmark.store.overview import overview
    from trainmark.store.report import results_of
    from trainmark.view import terminal

    rows = [(row, results_of(records)) for row, records in overview(runs)]
    if as_json:
        click.echo(json.dumps(runs_record(rows, price), indent=2))
        return 0
    if not rows:
        click.echo(f"no runs in {runs}; make one with `trainmark run quick`")
        return 0
    click.echo("\n".join(terminal.lines([runs_table(rows, price)], width=terminal_width())))
    tell_next("list", run=runs / rows[-1][0]["name"])
    return 0


@click.command("show")
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
    from trainmark.cli.progress import finish_words
    from trainmark.pages.number import counted
    from trainmark.pages.run.finish import finish_section
    from trainmark.pages.run.results import result_table
    from trainmark.pages.run.shares import arithmetic_section
    from trainmark.store.overview import run_row, trial_rows
    from trainmark.store.report import results_of
    from trainmark.view import terminal

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
    results = results_of(records)
    sections = [result_table(results), finish_section(results), arithmetic_section(results)]
    shown = terminal.lines([section for section in sections if section], width=terminal_width())
    click.echo("\n".join([*shown, ""]))
    for trial, record in zip(trials, records, strict=True):
        summary = f"{trial['throughput']:,.2f} {trial['unit']}" if trial["throughput"] else trial["detail"]
        if record.figure and record.figure.finish:
            summary = f"{finish_words(record.figure.finish)}, {summary}"
        click.echo(f"{trial['case']}/{trial['repeat']:02d}  {trial['outcome']:<11} {one_line(str(summary))}")
    for case, reason in info.skipped:
        click.echo(f"{one_line(case)}  skipped     {one_line(reason)}")
    return 0


def _trial(run: RunFolder, name: str, as_json: bool) -> int:
    from trainmark.launch.outcome import tail
    from trainmark.pages.runs import readable
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
    from trainmark.cli.progress import clock, finish_words, scores_words
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


HALF_A_PAIR = re.compile("[\ud800-\udfff]")
COUNTS = "SELECT run, outcome, count(*) AS trials FROM trials GROUP BY ALL ORDER BY min(rowid)"


@click.command("query")
@click.argument("sql", default=COUNTS)
@runs_option
@click.option("--rebuild", is_flag=True, help="Build the index anew from the trial folders first.")
@json_option
def query_command(sql: str, runs: Path, rebuild: bool, as_json: bool) -> int:
    """Ask the index, a DuckDB table `trials` with one row a trial, and print the answer.

    The trial folders are the truth; the index is rebuilt from them whenever they have changed.

    \b
    Examples:
      trainmark query
      trainmark query "SELECT run, median(throughput) FROM trials WHERE precision = 'amp' GROUP BY run"
      trainmark query "SELECT DISTINCT run, commit FROM trials WHERE to_timestamp(created) >= '2026-11-01'"
      trainmark query "DESCRIBE trials"
    """
    from trainmark.pages.runs import readable
    from trainmark.store.index import build, damaged, query
    from trainmark.view import terminal
    from trainmark.view.blocks import Table

    if HALF_A_PAIR.search(sql):  # what Python makes of bytes that are not UTF-8, and DuckDB cannot take
        raise UserError("the query is not UTF-8 text.")
    if rebuild and runs.is_dir():
        build(runs)
    names, rows = query(runs, sql)
    for run, sentence in damaged(runs):
        click.echo(f"trainmark: {runs / run}/{sentence}", err=True)
    if as_json:
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2, default=str))
        return 0
    cells = [[readable(name, value) for name, value in zip(names, row, strict=True)] for row in rows]
    numeric = frozenset(
        column for column in range(len(names)) if any(isinstance(row[column], (int, float)) for row in rows)
    )
    click.echo("\n".join(terminal.table(Table(names, cells, numeric), terminal_width())))
    return 0
