"""Packed files that no row names: a server was killed between naming a file and committing its row."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, select

from trainmark.base.errors import UserError
from trainmark.server.access import audit
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.models import Pack
from trainmark.server.ingest.files import SUFFIX, pack_path, publishing, publishing_mark
from trainmark.server.ingest.store import lock_stores
from trainmark.server.settings import Settings

NAME = re.compile(rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}")
# A restore writes all files before the first row.
FRESH_SECONDS = 600.0
DIGESTS_AT_ONCE = 500


@dataclass(frozen=True)
class Unreferenced:
    """Digests of files without a row, and their size together."""

    digests: tuple[str, ...]
    bytes: int


def remove_unfinished(engine: Engine, settings: Settings) -> Unreferenced:
    """Remove files whose push was cut off before its row was committed; none of them was acknowledged.

    For the start of a server: only marked files are looked at. Others without a row may be all that is left
    of runs whose database was set back, and go by `prune` only.
    """
    marked = [digest for digest in publishing(settings) if NAME.fullmatch(digest + SUFFIX)]
    return _remove(engine, settings, marked) if marked else Unreferenced((), 0)


def prune(engine: Engine, settings: Settings, dry_run: bool = False) -> Unreferenced:
    """Remove all files without a row but fresh ones, safely while the server serves.

    UserError where not one file has a row: the database is likely another server's.
    """
    digests = sorted(_stored_files(settings))
    with reading(engine) as connection:
        unknown = without_row(connection, digests)
    if digests and len(unknown) == len(digests):
        raise UserError(
            f"none of the {len(digests):,} packed files in {settings.packs} is in this database;"
            " check --database and --data. Nothing was removed."
        )
    old = [digest for digest in unknown if not _is_fresh(settings, digest)]
    if dry_run:
        return Unreferenced(tuple(old), sum(_size(settings, digest) for digest in old))
    return _remove(engine, settings, old) if old else Unreferenced((), 0)


def forget(engine: Engine, settings: Settings, digest: str) -> None:
    """Remove a file that has just got its name, unless its row was committed after all."""
    with writing(engine) as connection:
        lock_stores(connection)
        if without_row(connection, [digest]):
            pack_path(settings, digest).unlink(missing_ok=True)
        publishing_mark(settings, digest).unlink(missing_ok=True)


def without_row(connection: Connection, digests: Iterable[str]) -> list[str]:
    rest = list(digests)
    known: set[str] = set()
    for start in range(0, len(rest), DIGESTS_AT_ONCE):
        chosen = select(Pack.sha256).where(Pack.sha256.in_(rest[start : start + DIGESTS_AT_ONCE]))
        known.update(connection.execute(chosen).scalars())
    return [digest for digest in rest if digest not in known]


def _remove(engine: Engine, settings: Settings, candidates: list[str]) -> Unreferenced:
    removed, size = [], 0
    with writing(engine) as connection:
        # Pushes name their file and commit its row under this lock: what has no row now never gets one.
        lock_stores(connection)
        for digest in without_row(connection, candidates):
            path = pack_path(settings, digest)
            if not path.exists():
                continue
            own = _size(settings, digest)
            path.unlink()
            audit.record(connection, "prune", digest, detail=f"{own} bytes that no run names")
            removed.append(digest)
            size += own
    return Unreferenced(tuple(removed), size)


def _stored_files(settings: Settings) -> Iterator[str]:
    for path in settings.packs.glob(f"??/*{SUFFIX}"):
        if match := NAME.fullmatch(path.name):
            yield match[1]


def _is_fresh(settings: Settings, digest: str) -> bool:
    return pack_path(settings, digest).stat().st_mtime > time.time() - FRESH_SECONDS


def _size(settings: Settings, digest: str) -> int:
    return pack_path(settings, digest).stat().st_size
