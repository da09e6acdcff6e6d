"""`trainmark server prune`: packed files without a row removed."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.server.options import place_options, settings_of


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Print the files, and remove nothing.")
@place_options
def prune_command(dry_run: bool, database: str | None, data: Path | None) -> None:
    """Remove packed files that no run names and that are older than ten minutes, while the server serves.

    A server that was killed while it stored a run removes that file when it starts. Others are left where a
    database was set back to an older state: push them again first.

    \b
    Examples:
      trainmark server prune --dry-run
      trainmark server prune
    """
    settings = settings_of(data, database)
    from trainmark.server.database import migrate
    from trainmark.server.database.engine import opened
    from trainmark.server.ingest.files import pack_path
    from trainmark.server.ingest.unreferenced import prune

    with opened(settings) as engine:
        migrate.require_current(engine)
        unreferenced = prune(engine, settings, dry_run)
    for digest in unreferenced.digests:
        click.echo(pack_path(settings, digest))
    files, size = len(unreferenced.digests), unreferenced.bytes / 1e6
    click.echo(f"{files:,} files, {size:,.1f} MB{'' if dry_run else ' removed'}", err=True)
