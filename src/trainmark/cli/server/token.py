"""`trainmark server token`: tokens made, listed and revoked."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.options import json_option
from trainmark.cli.server.options import place_options, settings_of
from trainmark.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from trainmark.server.settings import Settings

ROLES = ("read", "push", "admin")
SPAN = re.compile(r"(\d{1,5})([hdwy])")
SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0, "y": 365 * 86400.0}
NEVER = "never"


@click.group("token", short_help="Make, list and revoke tokens.")
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
    from trainmark.server.access.roles import Role
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
def _engine(settings: Settings) -> Iterator[Engine]:
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
