"""`trainmark list`: the runs that are there."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from trainmark.cli.common.options import json_option, runs_option
from trainmark.visible import one_line


@click.command("list")
@runs_option
@json_option
def list_command(runs: Path, as_json: bool) -> int:
    """List the runs, oldest first, with how far each one got.

    \b
    Example:
      trainmark list --json | jq -r '.[-1].name'
    """
    from trainmark.store.overview import overview

    rows = overview(runs)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return 0
    if not rows:
        click.echo(f"no runs in {runs}; make one with `trainmark run quick`")
        return 0
    names = [one_line(run["name"]) for run in rows]
    width = max(map(len, names))
    for name, run in zip(names, rows, strict=True):
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
        failed = f", {run['failed']} failed" if run["failed"] else ""
        click.echo(f"{name:<{width}}  {made}  {run['status']:<9}  {run['ok']}/{run['least']} trials{failed}")
    return 0
