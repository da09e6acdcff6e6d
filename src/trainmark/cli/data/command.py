"""`trainmark data`: sets of images and tokens made, unpacked, converted, checked and read at speed."""

from __future__ import annotations

import click

from trainmark.cli.common.late import LateCommands

COMMANDS = {
    "make": "trainmark.cli.data.make:make_command",
    "imagenet": "trainmark.cli.data.imagenet:imagenet_command",
    "convert": "trainmark.cli.data.convert:convert_command",
    "verify": "trainmark.cli.data.verify:verify_command",
    "index": "trainmark.cli.data.index:index_command",
    "bench": "trainmark.cli.data.bench:bench_command",
}


@click.group("data", short_help="Make, convert, check and time data sets.", cls=LateCommands, files=COMMANDS)
def data_command() -> None:
    """Make, unpack, convert and check sets of images and tokens, and measure how fast they are read.

    \b
    Examples:
      trainmark data make pictures --classes 10 --images 2000
      trainmark data convert pictures pictures-rec --to rec
      trainmark data verify pictures-rec
      trainmark data make corpus --tokens 2000000 --vocabulary 512
    """
