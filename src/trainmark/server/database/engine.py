"""The connection to SQLite (in WAL, durable at every commit) or PostgreSQL."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from trainmark.base.errors import UserError
from trainmark.server.settings import ServerSettings

# Longer than the slowest transaction: a writer waits for its turn rather than failing.
BUSY_SECONDS = 60
POOL, OVERFLOW = 10, 30
CONNECT_SECONDS = 10


def open_engine(settings: ServerSettings) -> Engine:
    url = settings.url
    if url.startswith("sqlite"):
        settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_private(url.partition("///")[2])
        engine = create_engine(
            url, connect_args={"timeout": BUSY_SECONDS}, pool_size=POOL, max_overflow=OVERFLOW
        )
        event.listen(engine, "connect", _configure_sqlite)
        # Python's driver opens transactions when it pleases; ours begin where we say.
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(
        url,
        pool_size=POOL,
        max_overflow=OVERFLOW,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS},
    )


def _make_private(file: str) -> None:
    """Create a database that only its owner reads; SQLite gives its other files the same mode."""
    if not Path(file).exists():
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    elif Path(file).stat().st_mode & 0o077:
        # One of an earlier version; another's is none of ours to change.
        with contextlib.suppress(OSError):
            Path(file).chmod(0o600)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    # FULL also syncs the log at every commit, without which a power cut loses what was acknowledged. Every
    # connection has a cache of its own: 2 MB, as the system caches the file for all of them.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-2000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@contextlib.contextmanager
def opened(settings: ServerSettings) -> Iterator[Engine]:
    """The database for as long as one command needs it."""
    engine = open_engine(settings)
    try:
        require_reachable(engine)
        yield engine
    finally:
        engine.dispose()


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A consistent view of the database."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            yield connection


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction: committed whole at the end, or not at all."""
    with engine.connect() as connection:
        connection = connection.execution_options(writing=True)
        with connection.begin():
            yield connection


def require_reachable(engine: Engine) -> None:
    try:
        with engine.connect():
            return
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise UserError(f"the database cannot be opened: {reason}.") from error
