"""Brings a database to the tables of this version, and back."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import DBAPIError

from trainmark.base.errors import UserError
from trainmark.server.database.models import Base
from trainmark.server.faults import first_line
from trainmark.server.settings import ServerSettings

HERE = Path(__file__).parent
HEAD, EMPTY = "head", "base"
RESTORE = "restore a backup with `trainmark server restore`."


def configuration(engine: Engine, settings: ServerSettings | None = None) -> Config:
    """With `settings` a migration can read the packed files of the runs that are stored."""
    config = Config()
    for name, place in {"script_location": HERE, "version_locations": HERE / "migrations"}.items():
        config.set_main_option(name, str(place).replace("%", "%%"))
    # A folder's name may have spaces; the second name is that of versions before 1.16.
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_path_separator", "os")
    config.attributes["engine"] = engine
    config.attributes["packs"] = settings.packs if settings else None
    return config


def revisions(engine: Engine) -> list[str]:
    """Return the known revisions, oldest first."""
    script = ScriptDirectory.from_config(configuration(engine))
    return [revision.revision for revision in reversed(list(script.walk_revisions()))]


def current(engine: Engine) -> str | None:
    """Return the database's revision, None where it is empty; UserError where it says none, or several."""
    with engine.connect() as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
        tables = Base.metadata.tables.keys() & inspect(connection).get_table_names()
    if len(heads) > 1 or (tables and not heads):
        revision = "several revisions" if heads else "no revision"
        raise UserError(f"the database is damaged: it has tables and {revision} of them; {RESTORE}")
    return heads[0] if heads else None


def upgrade(engine: Engine, revision: str = HEAD, settings: ServerSettings | None = None) -> None:
    _require_known(engine, revision)
    with _failing_in_a_sentence():
        command.upgrade(configuration(engine, settings), revision)


def downgrade(engine: Engine, revision: str) -> None:
    _require_known(engine, revision)
    with _failing_in_a_sentence():
        command.downgrade(configuration(engine), revision)


@contextlib.contextmanager
def _failing_in_a_sentence() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise UserError(
            f"the migration failed and changed nothing ({first_line(error)}); try again, or {RESTORE}"
        ) from error


def move(engine: Engine, revision: str, settings: ServerSettings) -> tuple[str | None, str | None]:
    """Go up or down to a revision; return where the database was and where it is."""
    before, known = current(engine), revisions(engine)
    target = known[-1] if revision == HEAD else revision
    places = {name: place for place, name in enumerate((EMPTY, *known))}
    if places.get(target, 0) < places.get(before or EMPTY, 0):
        downgrade(engine, target)
    else:
        upgrade(engine, target, settings)
    return before, current(engine)


def require_current(engine: Engine) -> None:
    """UserError where the tables are another version's, or not whole."""
    newest, here = revisions(engine)[-1], require_not_newer(engine)
    if here != newest:
        raise UserError(
            f"the database is at revision {here or 'none'}, not {newest}; run `trainmark server migrate`."
        )
    columns = {table: rows for (_, table), rows in inspect(engine).get_multi_columns().items()}
    for table in Base.metadata.sorted_tables:
        if gone := set(table.columns.keys()) - {column["name"] for column in columns.get(table.name, ())}:
            what = f"column {sorted(gone)[0]} of " if table.name in columns else ""
            raise UserError(f"the database is damaged: {what}table {table.name} is missing; {RESTORE}")


def require_not_newer(engine: Engine) -> str | None:
    """Return the database's revision; UserError where this version does not know it."""
    here = current(engine)
    if here is not None and here not in revisions(engine):
        raise UserError(
            f"the database is of a newer version (revision {here}); use that version of trainmark."
        )
    return here


def _require_known(engine: Engine, revision: str) -> None:
    require_not_newer(engine)
    known = [*revisions(engine), HEAD, EMPTY]
    if revision not in known:
        raise UserError(f"there is no revision '{revision}'; known are {', '.join(known)}.")


DROPS_COLUMNS = (3, 35)


def drop_column(table: str, column: str) -> None:
    """Go back from a migration that brought a column."""
    if op.get_bind().dialect.name == "sqlite" and sqlite3.sqlite_version_info < DROPS_COLUMNS:
        # A copy of the table in place of this would, with foreign keys on, need all tables that refer to it.
        raise UserError(
            f"going back needs SQLite 3.35 or newer, and Python has {sqlite3.sqlite_version} here."
        )
    op.drop_column(table, column)
