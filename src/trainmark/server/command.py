"""`trainmark server`: tokens, backups, migrations and the audit log of a team's server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.base.text import one_line
from trainmark.cli.options import json_option

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from trainmark.server.settings import ServerSettings


FOLDER = click.Path(file_okay=False, path_type=Path)
MISSING = "the server needs packages of its own; pip install 'trainmark[server]'."
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="TRAINMARK_SERVER_DATABASE",
    help="postgresql://USER@HOST/NAME; by default a file in --data.",
)
data_option = click.option(
    "--data",
    type=FOLDER,
    envvar="TRAINMARK_SERVER_DATA",
    help="The server's folder; by default `server` in Trainmark's home.",
)


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --database and --data."""
    return database_option(data_option(command))


def settings_of(data: Path | None, database: str | None, **more: Any) -> ServerSettings:
    """Return the settings; UserError where the server's packages are not installed."""
    try:
        import alembic  # noqa: F401
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError(MISSING) from error
    from trainmark.server.settings import ServerSettings, default_data

    settings = ServerSettings(data=(data or default_data()).absolute(), database=database, **more)
    if settings.url.startswith("postgresql"):
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise UserError("PostgreSQL needs psycopg; pip install 'trainmark[server]'.") from error
    return settings


@click.group("server")
def server_command() -> None:
    """Manage a server: its tokens, backups, migrations and audit log. `trainmark serve` runs it.

    \b
    Examples:
      trainmark server token create ci --role push --expires 90d
      trainmark server backup monday.tar
      trainmark server restore monday.tar --data new-folder
      trainmark server migrate
      trainmark server migrate --to 0001
      trainmark server prune --dry-run
    """


ROLES = ("read", "push", "admin")
SPAN = re.compile(r"(\d{1,5})([hdwy])")
SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0, "y": 365 * 86400.0}
NEVER = "never"


@server_command.group("token")
def token_command() -> None:
    """Make, list and revoke the tokens that give access to a server.

    \b
    Examples:
      trainmark server token create ci --role push --expires 90d --suites 'nightly*'
      trainmark server token list
      trainmark server token revoke ci
    """


@token_command.command("create")
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), required=True, help="What it may do; admin may do everything."
)
@click.option("--expires", metavar="SPAN", default="1y", show_default=True, help="12h, 90d, 4w, 1y or never.")
@click.option("--suites", metavar="PATTERN", help="Only runs of suites that match may be pushed.")
@place_options
def create_command(
    name: str, role: str, expires: str, suites: str | None, database: str | None, data: Path | None
) -> None:
    """Make a token and print it. It is stored as a hash only and cannot be shown again."""
    settings = settings_of(data, database)
    from trainmark.server.access import tokens
    from trainmark.server.access.tokens import Role
    from trainmark.server.database.engine import writing

    end = _end(expires)
    with _engine(settings) as engine, writing(engine) as connection:
        secret = tokens.create(connection, name, Role(role), end, suites)
    click.echo(secret)


@token_command.command("list")
@place_options
@json_option
def list_command(database: str | None, data: Path | None, as_json: bool) -> None:
    """List the tokens: role, scope, when made, used, expiring, revoked."""
    settings = settings_of(data, database)
    from trainmark.server.access import tokens
    from trainmark.server.database.engine import reading

    with _engine(settings) as engine, reading(engine) as connection:
        rows = tokens.tokens(connection)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    for row in rows:
        state = f"revoked {_date(row.revoked)}" if row.revoked else f"expires {_date(row.expires)}"
        click.echo(
            f"{row.name:<24} {row.role:<6} {row.suites or 'all suites':<16} used {_date(row.used)}, {state}"
        )


@token_command.command("revoke")
@click.argument("name")
@place_options
def revoke_command(name: str, database: str | None, data: Path | None) -> None:
    """Revoke a token at once, and end the sessions that were opened with it."""
    settings = settings_of(data, database)
    from trainmark.server.access import tokens
    from trainmark.server.database.engine import writing

    with _engine(settings) as engine, writing(engine) as connection:
        tokens.revoke(connection, name)
    click.echo(f"revoked {name}")


@contextmanager
def _engine(settings: ServerSettings) -> Iterator[Engine]:
    """Open the database, with tables where it is new."""
    from trainmark.server.database import migrate
    from trainmark.server.database.engine import opened

    with opened(settings) as engine:
        if migrate.current(engine) is None:
            migrate.upgrade(engine)
        migrate.require_current(engine)
        yield engine


def _end(span: str) -> float | None:
    if span == NEVER:
        return None
    if not (match := SPAN.fullmatch(span)) or int(match[1]) == 0:
        raise UserError(f"--expires takes 12h, 90d, 4w, 1y or never, not '{span}'.")
    return time.time() + int(match[1]) * SECONDS[match[2]]


def _date(moment: float | None) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d") if moment else NEVER


NEW_FILE = click.Path(dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@server_command.command("backup")
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


@server_command.command("restore")
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


@server_command.command("migrate")
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
    from trainmark.server.settings import locked

    with opened(settings) as engine, locked(settings):
        before, after = migrate.move(engine, revision, settings)
    click.echo(f"revision {before or 'none'} → {after or 'none'}")


@server_command.command("prune")
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
    from trainmark.server.ingest.ingest import pack_path, prune_unreferenced

    with opened(settings) as engine:
        migrate.require_current(engine)
        unreferenced = prune_unreferenced(engine, settings, dry_run)
    for digest in unreferenced.digests:
        click.echo(pack_path(settings, digest))
    files, size = len(unreferenced.digests), unreferenced.bytes / 1e6
    click.echo(f"{files:,} files, {size:,.1f} MB{'' if dry_run else ' removed'}", err=True)


@server_command.command("audit")
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
    from trainmark.server.database.overview_queries import audit_log

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
