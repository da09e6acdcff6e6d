"""`trainmark server migrate`: the database brought to the tables of this version, or back."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.server.options import place_options, settings_of


@click.command("migrate")
@click.option(
    "--to", "revision", default="head", show_default=True, help="A revision; `base` removes all tables."
)
@place_options
def migrate_command(revision: str, database: str | None, data: Path | None) -> None:
    """Bring the database to the tables of this version, or --to an earlier revision. Make a backup first.

    \b
    Examples:
      trainmark server migrate
      trainmark server migrate --to 0001
    """
    settings = settings_of(data, database)
    from trainmark.server.database import migrate
    from trainmark.server.database.engine import opened
    from trainmark.server.lock import locked

    with opened(settings) as engine, locked(settings):
        before, after = migrate.move(engine, revision, settings)
    click.echo(f"revision {before or 'none'} → {after or 'none'}")
