"""The way back of a migration that brought a column."""

from __future__ import annotations

import sqlite3

from alembic import op

from trainmark.base.errors import UserError

DROPS_COLUMNS = (3, 35)


def drop_column(table: str, column: str) -> None:
    if op.get_bind().dialect.name == "sqlite" and sqlite3.sqlite_version_info < DROPS_COLUMNS:
        # A copy of the table in place of this would, with foreign keys on, need all tables that refer to it.
        raise UserError(
            f"going back needs SQLite 3.35 or newer, and Python has {sqlite3.sqlite_version} here."
        )
    op.drop_column(table, column)
