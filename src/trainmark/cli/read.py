"""`trainmark read`: the figures in other programs' logs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import click

from trainmark.api.logs import read
from trainmark.base.errors import UserError
from trainmark.base.text import visible
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option
from trainmark.cli.terminal import deliver, rendered, terminal_width
from trainmark.logs.read import LogReading, as_record
from trainmark.logs.recognition import formats

SOME_NOT_READ = 1
# A plugin: imported where --protocol asks for it, and by name, as a command of one is.
PROTOCOLS = "trainmark.audit.protocols"


@click.command("read")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--format", "format_name", metavar="NAME", help="Read as this format, or as a .yaml of your own."
)
@click.option("--formats", "lists_formats", is_flag=True, help="List the known formats.")
@click.option("--batch", type=click.FloatRange(min=0, min_open=True), help="Samples of a step on one device.")
@click.option("--devices", type=click.IntRange(min=1), help="Devices that took part.")
@click.option(
    "--samples-per-step",
    type=click.FloatRange(min=0, min_open=True),
    help="Samples (or tokens) of a step on all devices together.",
)
@click.option("--protocol", metavar="NAME", help="Apply someone's published rule to a folder of logs.")
@click.option("--warmup", type=int, metavar="W", help="The protocol's warm-up, in its own steps.")
@click.option("--train", type=int, metavar="T", help="The protocol's last step.")
@json_option
def read_command(
    paths: tuple[str, ...],
    format_name: str | None,
    lists_formats: bool,
    batch: float | None,
    devices: int | None,
    samples_per_step: float | None,
    protocol: str | None,
    warmup: int | None,
    train: int | None,
    as_json: bool,
) -> int:
    """Read logs: files, folders, globs, archives, or - for standard input.

    The format is recognised from the content. The throughput is ours, samples over time in the steady part
    of the run, whatever the program itself concludes. Where a log tells steps but not samples, --batch,
    --devices or --samples-per-step complete it; a log that says otherwise itself is refused.

    \b
    Examples:
      trainmark read train.log
      trainmark read logs/ results.tar.gz --json
      zcat train.log.gz | trainmark read - --format dllogger-pytorch
      trainmark read train.log --batch 32 --devices 8
      trainmark read --formats
      trainmark read logs/ --protocol dlperf-pytorch-rn50 --warmup 20 --train 120
    """
    if lists_formats:
        return _list_formats(as_json)
    if not paths:
        raise click.UsageError("name what to read: files, folders, globs, archives, or - for standard input.")
    if protocol is not None:
        return _by_protocol(paths, protocol, warmup, train, as_json)
    reading = read(
        *paths, format=format_name, batch=batch, devices=devices, samples_per_step=samples_per_step
    )
    for refusal in reading.refusals:
        click.echo(f"trainmark: {visible(refusal.sentence)}", err=True)
    if not reading.logs:
        raise UserError("none of these could be read.")
    if as_json:
        _write_json(reading)
    else:
        deliver(rendered(reading.page(), "text", width=terminal_width()), "text", None)
        if len(paths) == 1 and Path(paths[0]).exists():
            tell_next("read", file=paths[0])
    return SOME_NOT_READ if reading.refusals else 0


def _list_formats(as_json: bool) -> int:
    titles = {name: format.title for name, format in sorted(formats().items())}
    width = max(map(len, titles))
    rows = (f"{name:<{width}}  {title}" for name, title in titles.items())
    click.echo(json.dumps(titles, indent=2) if as_json else "\n".join(rows))
    return 0


def _write_json(reading: LogReading) -> None:
    """One run after the other, so that tens of thousands of them are never one text."""
    click.echo('{\n  "runs": [')
    runs = reading.runs
    for place, run in enumerate(runs, 1):
        text = json.dumps(as_record(run), indent=2).replace("\n", "\n    ")
        click.echo("    " + text + ("," if place < len(runs) else ""))
    click.echo("  ]\n}")


def _by_protocol(
    paths: tuple[str, ...], protocol: str, warmup: int | None, train: int | None, as_json: bool
) -> int:
    """Their result on standard output, to the digit; what is wrong with it, and ours, beside it."""
    if len(paths) != 1:
        raise UserError("a protocol is applied to one folder of logs.")
    protocols = import_module(PROTOCOLS)
    reading = protocols.read(protocol, Path(paths[0]), warmup, train)
    click.echo(protocols.as_json(reading.table) if as_json else protocols.as_printed(reading.table))
    for doubt in reading.doubts:
        click.echo(f"! {doubt.code}: {visible(doubt.message)}", err=True)
    if reading.ours and not as_json:
        click.echo(f"\nby wall clock, samples over time:\n{protocols.as_printed(reading.ours)}")
    return 0
