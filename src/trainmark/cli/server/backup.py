"""`trainmark server backup` and `trainmark server restore`."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.server.options import place_options, settings_of

NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=NEW_FILE)
@place_options
def backup_command(file: Path, database: str | None, data: Path | None) -> None:
    """Write everything that a server has to FILE, consistent while it goes on serving.

    \b
    Examples:
      trainmark server backup monday.tar
    """
    settings = settings_of(data, database)
    from trainmark.server.backup import backup

    counts = backup(settings, file)
    click.echo(f"{file}: {_summary(counts)}")


@click.command("restore")
@click.argument("file", type=FILE)
@place_options
def restore_command(file: Path, database: str | None, data: Path | None) -> None:
    """Fill an empty database and folder from a backup, of SQLite or PostgreSQL, to either.

    \b
    Examples:
      trainmark server restore monday.tar --data new-folder
    """
    settings = settings_of(data, database)
    from trainmark.server.backup import restore

    counts = restore(settings, file)
    click.echo(f"{settings.data}: {_summary(counts)}")


def _summary(counts: dict[str, int]) -> str:
    names = ("runs", "results", "trials", "packs", "tokens")
    return ", ".join(f"{counts.get(name, 0):,} {name}" for name in names)
