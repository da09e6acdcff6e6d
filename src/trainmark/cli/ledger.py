"""`trainmark ledger`: what others published, with its source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.options import json_option
from trainmark.cli.terminal import deliver, print_json, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.api.ledgers import Ledger


@click.command("ledger")
@click.option("--workload", help="One of its workloads, such as bert-base.")
@click.option("--size", help="With --workload: the model's size, as in --workload gpt2 --size 124m.")
@click.option("--length", help="The length of a sequence in tokens.")
@click.option("--unit", help="images/s, sequences/s, samples/s, tokens/s.")
@click.option("--model", help="A part of a workload's name: llama finds all of them.")
@click.option("--framework", help="pytorch, tensorflow, mxnet, …")
@click.option("--device", help="v100, a100, h100, 'h100 pcie', …; the name that a driver gives works too.")
@click.option("--precision", help="fp32, tf32, amp, fp16, bf16, fp8, fp4.")
@click.option("--topology", help="Nodes and devices a node, as in 1n8g.")
@click.option("--year", help="The year of the publication, or a span: 2024, 2021-2023.")
@click.option("--source", help="The name of one source; they are in the first column.")
@click.option(
    "--also",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Read this file of results too.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a plot of the throughput per device to this .html or .svg file.",
)
@json_option
def ledger_command(also: tuple[Path, ...], plot: Path | None, as_json: bool, **wanted: str | None) -> int:
    """List published results, each with where it stands and what is known to be wrong with it.

    \b
    Examples:
      trainmark ledger --device v100 --precision amp --topology 1n8g
      trainmark ledger --model llama --device h100 --year 2024-2025
      trainmark ledger --workload gpt2 --size 124m --length 1024
      trainmark ledger --source dlperf-mindspore --json
      trainmark ledger --workload resnet50 --plot published.html
    """
    from trainmark.api.ledgers import ledger

    found = ledger(also=also, **wanted)
    if plot:
        _write(plot, found)
    if as_json:
        print_json(found.rows())
    elif plot:
        click.echo(str(plot))
    elif found:
        deliver(rendered(found.page(), "text", width=terminal_width()), "text", None)
    else:
        click.echo("no row of the ledger is all of that")
    return 0


def _write(path: Path, found: Ledger) -> None:
    from trainmark.base.errors import UserError
    from trainmark.pages.ledger import svg
    from trainmark.view import html

    if path.suffix not in (".html", ".svg"):
        raise UserError(f"a plot is an .html or an .svg file; {path.name} is neither.")
    drawn = svg(found.entries) if path.suffix == ".svg" else html.render(found.page())
    path.write_text(drawn, encoding="utf-8")
