"""`trainmark read`: the figures in logs that other programs wrote."""

from __future__ import annotations

import json
from pathlib import Path

import click

from trainmark.cli.options import json_option
from trainmark.report.visible import visible

SOME_NOT_READ = 1


@click.command("read")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format", "format_name", metavar="NAME", help="Read as this format, or as a .yaml of your own."
)
@click.option("--protocol", metavar="NAME", help="Apply someone's published rule to a folder of logs.")
@click.option("--warmup", type=int, metavar="W", help="The protocol's warm-up, in its own steps.")
@click.option("--train", type=int, metavar="T", help="The protocol's last step.")
@json_option
def read_command(
    paths: tuple[str, ...],
    format_name: str | None,
    protocol: str | None,
    warmup: int | None,
    train: int | None,
    as_json: bool,
) -> int:
    """Read logs: files, folders, globs, archives, or - for standard input.

    The format is recognised from the content. The throughput is ours, samples over time in the steady part
    of the run, whatever the program itself concludes.

    \b
    Examples:
      trainmark read train.log
      trainmark read logs/ results.tar.gz --json
      zcat train.log.gz | trainmark read - --format dllogger-pytorch
      trainmark read logs/ --protocol dlperf-pytorch-rn50 --warmup 20 --train 120
    """
    if protocol is not None:
        return _by_protocol(paths, protocol, warmup, train, as_json)
    from trainmark.cli.logged_runs import as_dicts, lines
    from trainmark.errors import UserError
    from trainmark.readers.archives import Refusal
    from trainmark.readers.named import named_format
    from trainmark.readers.read import Log, read_logs

    format = named_format(format_name) if format_name else None
    logs: list[Log] = []
    refusals: list[Refusal] = []
    for found in read_logs(paths, format):
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            logs.append(found)
    if not logs and len(refusals) == 1:
        raise UserError(visible(refusals[0].sentence))
    for refusal in refusals:
        click.echo(f"trainmark: {visible(refusal.sentence)}", err=True)
    if not logs:
        raise UserError("none of these could be read.")
    runs = as_dicts(logs)
    click.echo(json.dumps({"runs": runs}, indent=2) if as_json else "\n".join(lines(logs, runs)))
    return SOME_NOT_READ if refusals else 0


def _by_protocol(
    paths: tuple[str, ...], protocol: str, warmup: int | None, train: int | None, as_json: bool
) -> int:
    """Their result on standard output, to the digit; what is wrong with it, and ours, beside it."""
    from trainmark import protocols
    from trainmark.errors import UserError

    if len(paths) != 1:
        raise UserError("a protocol is applied to one folder of logs.")
    reading = protocols.read(protocol, Path(paths[0]), warmup, train)
    click.echo(protocols.as_json(reading.table) if as_json else protocols.as_printed(reading.table))
    for doubt in reading.doubts:
        click.echo(f"! {doubt.code}: {visible(doubt.message)}", err=True)
    if reading.ours and not as_json:
        click.echo(f"\nby wall clock, samples over time:\n{protocols.as_printed(reading.ours)}")
    return 0
