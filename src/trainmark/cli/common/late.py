"""Commands whose files are imported when they are asked for: help stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import click


class LateCommands(click.Group):
    """`files` gives for each name where the command is, as in `trainmark.cli.run.run:run_command`.

    `groups` are the names under each heading of the help; all under one where there are none.
    """

    def __init__(
        self, files: Mapping[str, str], groups: Mapping[str, Iterable[str]] | None = None, **attributes: Any
    ) -> None:
        super().__init__(**attributes)
        self.files = files
        self.groups = groups or {"Commands": files}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.files)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.files:
            return None
        module, _, name = self.files[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, self.files))
        for heading, names in self.groups.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(room)) for name, each in commands if each])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.files:
            from trainmark.errors import nearest

            asked = " ".join([*_below_the_program(ctx), args[0]])
            raise click.UsageError(f"there is no command '{asked}'{nearest(args[0], self.files)}")
        return super().resolve_command(ctx, args)


def _below_the_program(ctx: click.Context) -> list[str]:
    """The commands that led here, without the program: `python -m trainmark` is one name of three words."""
    if ctx.parent is None:
        return []
    return [*_below_the_program(ctx.parent), ctx.info_name or ""]
