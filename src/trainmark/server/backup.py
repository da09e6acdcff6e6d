"""Backup and restore: all rows and packed files of a server in one file, from either database to either.

A backup is a tar with `backup.json` first, then a member of JSON lines for each table as one transaction saw
it, then the packed files that its rows name. These are never changed once they are there, so that the whole
is consistent while the server goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import JSON, BigInteger, Connection, Engine, Integer, MetaData, Table, insert, select, text

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.server.database import migrate
from trainmark.server.database.engine import open_engine, opened, reading, writing
from trainmark.server.database.models import PackTable
from trainmark.server.ingest.ingest import pack_path
from trainmark.server.settings import ServerSettings

ABOUT, TABLES, PACKS = "backup.json", "tables", "packs"
SCHEMA = 1
VERSION_TABLE = "alembic_version"
ROWS_AT_ONCE = 500


def backup(settings: ServerSettings, out: Path) -> dict[str, int]:
    """Write a backup; return how many rows each table has. The file appears whole or not at all."""
    if out.exists():
        raise UserError(f"{out} exists; name a new file.")
    with opened(settings) as engine:
        if migrate.require_not_newer(engine) is None:
            raise UserError("the database is empty; there is nothing to back up (--database, --data).")
        return _backup(engine, settings, out)


def _backup(engine: Engine, settings: ServerSettings, out: Path) -> dict[str, int]:
    descriptor, part = tempfile.mkstemp(dir=out.absolute().parent, prefix=f".{out.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
                counts = _write(engine, settings, archive)
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(out)
    finally:
        Path(part).unlink(missing_ok=True)
    return counts


def _write(engine: Engine, settings: ServerSettings, archive: tarfile.TarFile) -> dict[str, int]:
    about = {
        "schema": SCHEMA,
        "version": __version__,
        "revision": migrate.current(engine),
        "created": time.time(),
    }
    _add(archive, ABOUT, io.BytesIO(json.dumps(about).encode()))
    counts, digests = {}, []
    with reading(engine) as connection:
        for table in _tables(connection):
            with tempfile.TemporaryFile() as rows:
                counts[table.name] = _write_rows(connection, table, rows)
                _add(archive, f"{TABLES}/{table.name}.jsonl", rows)
        digests = list(connection.execute(select(PackTable.sha256)).scalars())
    for sha256 in digests:
        path = pack_path(settings, sha256)
        try:
            with path.open("rb") as file:
                _add(archive, f"{PACKS}/{sha256}", file)
        except FileNotFoundError as error:
            raise UserError(f"{path} is missing; the backup would not be whole.") from error
    return counts


def _tables(connection: Connection) -> list[Table]:
    """Return the tables as they are: those of an older version are backed up before they are migrated."""
    tables = MetaData()
    tables.reflect(connection, only=lambda name, _: name != VERSION_TABLE)
    for column in (column for table in tables.sorted_tables for column in table.columns):
        if isinstance(column.type, JSON):
            # What was NULL is restored as NULL, not as the JSON text `null`.
            column.type.none_as_null = True
    return tables.sorted_tables


def _write_rows(connection: Connection, table: Table, out: BinaryIO) -> int:
    count = 0
    streamed = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(select(table))
    for row in streamed.mappings():
        out.write(json.dumps(dict(row)).encode() + b"\n")
        count += 1
    return count


def _add(archive: tarfile.TarFile, name: str, file: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = file.seek(0, os.SEEK_END), 0o600
    file.seek(0)
    archive.addfile(info, file)


def restore(settings: ServerSettings, source: Path) -> dict[str, int]:
    """Fill an empty database and folder from a backup; UserError, and nothing changed, where they are not."""
    engine = open_engine(settings)
    try:
        if migrate.current(engine) is not None:
            raise UserError("the database is not empty; restore into a new one (--database, --data).")
        if settings.packs.exists() and any(settings.packs.iterdir()):
            raise UserError(f"{settings.packs} is not empty; restore into a new folder (--data).")
        if not source.is_file():
            raise UserError(f"there is no file {source}.")
        with tarfile.open(source, "r:") as archive:
            return _read(engine, settings, archive)
    except tarfile.TarError as error:
        raise UserError(f"{source} is no backup, or damaged: {error}.") from error
    finally:
        engine.dispose()


def _read(engine: Engine, settings: ServerSettings, archive: tarfile.TarFile) -> dict[str, int]:
    members = {member.name: member for member in archive if member.isreg()}
    about = json.loads(_content(archive, members, ABOUT).read())
    if about.get("schema") != SCHEMA or about.get("revision") not in migrate.revisions(engine):
        raise UserError("the backup is of another version of trainmark; restore it with that one.")
    for folder in (settings.data, settings.packs):  # `parents=True` makes those above open to others
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for sha256 in _digests(archive, members):
        _restore_pack(settings, sha256, _content(archive, members, f"{PACKS}/{sha256}"))
    migrate.upgrade(engine, about["revision"])
    counts = {}
    try:
        with writing(engine) as connection:
            for table in _tables(connection):
                if (name := f"{TABLES}/{table.name}.jsonl") in members:
                    counts[table.name] = _read_rows(connection, table, _content(archive, members, name))
    except BaseException:
        migrate.downgrade(engine, migrate.EMPTY)
        raise
    migrate.upgrade(engine, settings=settings)
    return counts


def _digests(archive: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> list[str]:
    lines = _content(archive, members, f"{TABLES}/packs.jsonl")
    return [json.loads(line)["sha256"] for line in lines]


def _content(archive: tarfile.TarFile, members: dict[str, tarfile.TarInfo], name: str) -> Any:
    if name not in members:
        raise UserError(f"the backup has no member {name}; it is not whole.")
    return archive.extractfile(members[name])


def _restore_pack(settings: ServerSettings, sha256: str, content: BinaryIO) -> None:
    path = pack_path(settings, sha256)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(".part")
    digest = hashlib.sha256()
    with part.open("wb") as file:
        while chunk := content.read(1 << 20):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != sha256:
        part.unlink()
        raise UserError(f"the backup is damaged: the packed file {sha256} has another digest.")
    part.replace(path)


def _read_rows(connection: Connection, table: Table, lines: BinaryIO) -> int:
    count = 0
    for rows in _batches(lines):
        connection.execute(insert(table), rows)
        count += len(rows)
    key = next(
        (column for column in table.primary_key if isinstance(column.type, (Integer, BigInteger))), None
    )
    if count and key is not None and connection.dialect.name == "postgresql":
        # The next row must get a number that no restored one has.
        quoted = f'"{table.name}"'
        connection.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{quoted}', 'id'), (SELECT max(id) FROM {quoted}))")
        )
    return count


def _batches(lines: BinaryIO) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        rows.append(json.loads(line))
        if len(rows) == ROWS_AT_ONCE:
            yield rows
            rows = []
    if rows:
        yield rows
