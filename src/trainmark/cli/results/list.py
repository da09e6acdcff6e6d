"""`trainmark list`: the runs that are there, each with its main figure."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.common.next_step import tell_next
from trainmark.cli.common.options import json_option, price_option, runs_option
from trainmark.cli.common.terminal import terminal_width

if TYPE_CHECKING:
    from trainmark.measure.cost import Price

HEADER = ("run", "created", "state", "trials", "framework", "cases", "throughput", "interval", "")
COSTS = ("cost/M", "cost to target", "kWh/M")
RIGHT = frozenset({5, 6, 9, 10, 11})


@click.command("list", short_help="List the runs.")
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
    from trainmark.report.assemble import results_of
    from trainmark.report.format.table import Table
    from trainmark.report.sections import headline
    from trainmark.store.overview import overview

    rows = [(row, results_of(records)) for row, records in overview(runs)]
    if as_json:
        document = [
            {
                **row,
                "frameworks": headline.frameworks(results),
                "cases": len(results),
                "headline": headline.record(results, price),
            }
            for row, results in rows
        ]
        click.echo(json.dumps(document, indent=2))
        return 0
    if not rows:
        click.echo(f"no runs in {runs}; make one with `trainmark run quick`")
        return 0
    cells = [(*_state(row), *headline.cells(results, price)) for row, results in rows]
    click.echo("\n".join(Table((*HEADER, *(COSTS if price else ())), cells, RIGHT).lines(terminal_width())))
    if price:
        click.echo(f"cost/M and kWh/M: of a million samples, at {price}")
    tell_next("list", run=runs / rows[-1][0]["name"])
    return 0


def _state(run: dict[str, Any]) -> tuple[str, ...]:
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
    failed = f", {run['failed']} failed" if run["failed"] else ""
    return (run["name"], made, run["status"], f"{run['ok']}/{run['least']}{failed}")
