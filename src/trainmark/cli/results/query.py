"""`trainmark query`: SQL over all trials of all runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from trainmark.cli.common.options import json_option, runs_option
from trainmark.cli.common.terminal import terminal_width
from trainmark.errors import UserError

HALF_A_PAIR = re.compile("[\ud800-\udfff]")
COUNTS = "SELECT run, outcome, count(*) AS trials FROM trials GROUP BY ALL ORDER BY min(rowid)"


@click.command("query", short_help="Ask for trials of all runs in SQL.")
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
    from trainmark.report.format.table import Table
    from trainmark.report.format.value import readable
    from trainmark.store.index import build, damaged, query

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
    for line in Table(names, cells, numeric).lines(terminal_width()):
        click.echo(line)
    return 0
