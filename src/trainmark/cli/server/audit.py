"""`trainmark server audit`: who did what."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import click

from trainmark.cli.common.options import json_option
from trainmark.cli.server.options import place_options, settings_of
from trainmark.visible import one_line


@click.command("audit")
@click.option(
    "--most", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Entries, the newest."
)
@place_options
@json_option
def audit_command(most: int, database: str | None, data: Path | None, as_json: bool) -> None:
    """Print the newest entries of the audit log: pushes, refusals, logins, tokens.

    \b
    Examples:
      trainmark server audit
      trainmark server audit --json
    """
    settings = settings_of(data, database)
    from trainmark.server.database import migrate
    from trainmark.server.database.engine import opened, reading
    from trainmark.server.database.queries import audit_log

    with opened(settings) as engine:
        migrate.require_current(engine)
        with reading(engine) as connection:
            rows = audit_log(connection, most)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    for row in reversed(rows):
        moment = datetime.fromtimestamp(row.time, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        words = (moment, row.action, row.token or "–", row.address or "–", row.subject, row.detail)
        click.echo(one_line("  ".join(words)))
