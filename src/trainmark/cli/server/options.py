"""Options that the server's commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.errors import UserError

if TYPE_CHECKING:
    from trainmark.server.settings import Settings

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


def settings_of(data: Path | None, database: str | None, **more: Any) -> Settings:
    """Return the settings; UserError where the server's packages are not installed."""
    try:
        import alembic  # noqa: F401
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError(MISSING) from error
    from trainmark.server.settings import Settings, default_data

    settings = Settings(data=(data or default_data()).absolute(), database=database, **more)
    if settings.url.startswith("postgresql"):
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise UserError("PostgreSQL needs psycopg; pip install 'trainmark[server]'.") from error
    return settings
