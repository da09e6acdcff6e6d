"""Commands that measure on this machine only, and say so where other machines are named."""

from __future__ import annotations

import click

# Options of `trainmark run` that say where to run.
NODE_FLAGS = frozenset(
    ("--hosts", "--hostfile", "--inventory", "--label", "--exclude", "--launcher", "--nodes", "--interface")
)


class OneMachineCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in NODE_FLAGS:
                raise click.UsageError(
                    f"{self.name} measures on this machine only; leave out {error.option_name}."
                ) from error
            raise
