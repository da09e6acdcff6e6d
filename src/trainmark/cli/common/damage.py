"""What is said of a run whose files are damaged, beside whatever else a command prints of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trainmark.visible import one_line

if TYPE_CHECKING:
    from trainmark.store.run import RunFolder


def tell_damage(*runs: RunFolder) -> None:
    """Print a line on standard error for each file that could not be used."""
    for run in runs:
        for damage in run.damaged.values():
            click.echo(one_line(f"trainmark: {run.path}/{damage.sentence}"), err=True)
