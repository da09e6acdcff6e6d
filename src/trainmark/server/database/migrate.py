"""Bringing a database to the tables of this version, and back."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from trainmark.errors import UserError
from trainmark.server.settings import Settings

MIGRATIONS = Path(__file__).parent / "migrations"
HEAD, EMPTY = "head", "base"


def configuration(engine: Engine, settings: Settings | None = None) -> Config:
    """With `settings` a migration can read the packed files of the runs that are stored."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["engine"] = engine
    config.attributes["packs"] = settings.packs if settings else None
    return config


def revisions(engine: Engine) -> list[str]:
    """Return the known revisions, oldest first."""
    script = ScriptDirectory.from_config(configuration(engine))
    return [revision.revision for revision in reversed(list(script.walk_revisions()))]


def current(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(engine: Engine, revision: str = HEAD, settings: Settings | None = None) -> None:
    _require_known(engine, revision)
    command.upgrade(configuration(engine, settings), revision)


def downgrade(engine: Engine, revision: str) -> None:
    _require_known(engine, revision)
    command.downgrade(configuration(engine), revision)


def move(engine: Engine, revision: str, settings: Settings) -> tuple[str | None, str | None]:
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
    """UserError where the tables are another version's."""
    newest, here = revisions(engine)[-1], require_not_newer(engine)
    if here != newest:
        raise UserError(
            f"the database is at revision {here or 'none'}, not {newest}; run `trainmark server migrate`."
        )


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
