"""`trainmark data`: image sets made, unpacked, converted, checked and read at speed."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "make": "trainmark.cli.data_make:make_command",
    "imagenet": "trainmark.cli.data_imagenet:imagenet_command",
    "convert": "trainmark.cli.data_convert:convert_command",
    "verify": "trainmark.cli.data_verify:verify_command",
    "index": "trainmark.cli.data_index:index_command",
    "bench": "trainmark.cli.data_bench:bench_command",
}


class DataCommands(click.Group):
    """Imports a command's file when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from trainmark.errors import nearest

            raise click.UsageError(f"there is no command 'data {args[0]}'{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group("data", cls=DataCommands)
def data_command() -> None:
    """Make, unpack, convert and check image sets, and measure how fast they are read.

    \b
    Examples:
      trainmark data make pictures --classes 10 --images 2000
      trainmark data convert pictures pictures-rec --to rec
      trainmark data verify pictures-rec
    """
