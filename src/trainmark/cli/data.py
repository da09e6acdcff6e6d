"""`trainmark data`: image sets made, unpacked, converted, checked and read at speed."""

from __future__ import annotations

import click

from trainmark.cli.late import LateCommands

COMMANDS = {
    "make": "trainmark.cli.data_make:make_command",
    "imagenet": "trainmark.cli.data_imagenet:imagenet_command",
    "convert": "trainmark.cli.data_convert:convert_command",
    "verify": "trainmark.cli.data_verify:verify_command",
    "index": "trainmark.cli.data_index:index_command",
    "bench": "trainmark.cli.data_bench:bench_command",
}


@click.group("data", cls=LateCommands, files=COMMANDS)
def data_command() -> None:
    """Make, unpack, convert and check image sets, and measure how fast they are read.

    \b
    Examples:
      trainmark data make pictures --classes 10 --images 2000
      trainmark data convert pictures pictures-rec --to rec
      trainmark data verify pictures-rec
    """
