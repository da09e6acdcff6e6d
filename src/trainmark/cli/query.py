"""`trainmark query`: SQL over all trials of all runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.cli.options import json_option, runs_option

COUNTS = "SELECT run, outcome, count(*) AS trials FROM trials GROUP BY ALL ORDER BY ALL"


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
      trainmark query "DESCRIBE trials"
    """
    from trainmark.report.text import aligned
    from trainmark.store.index import build, query

    if rebuild and runs.is_dir():
        build(runs)
    names, rows = query(runs, sql)
    if as_json:
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2, default=str))
        return 0
    cells = [tuple("" if value is None else str(value) for value in row) for row in rows]
    for line in aligned([tuple(names), *cells], frozenset()):
        click.echo(line)
    return 0
