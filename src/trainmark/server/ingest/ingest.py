"""Takes one packed file in, from the upload, written whole and durably, to the acknowledgement.

And removes files that no row names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DataError, DBAPIError

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.tokens import Identity
from trainmark.server.database.engine import reading, writing
from trainmark.server.database.models import PackTable, RunTable
from trainmark.server.faults import CLOCK, FULL
from trainmark.server.ingest.check import TOO_LARGE, IngestError
from trainmark.server.ingest.isolated import check_isolated
from trainmark.server.ingest.store import Received, Stored, known, lock_stores, store
from trainmark.server.settings import ServerSettings
from trainmark.store.verify import AHEAD_SECONDS
from trainmark.store.verify import CLOCK as IMPOSSIBLE_BY_CLOCK

SUFFIX = ".trainmark"
PUBLISHING = "publishing-"


class Upload:
    """A file that is being received; it becomes a packed file by `publish`, or is gone after `close`."""

    def __init__(self, settings: ServerSettings) -> None:
        settings.incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        if settings.room_bytes() <= 0:
            raise IngestError(FULL.sentence, FULL.status)
        descriptor, name = tempfile.mkstemp(dir=settings.incoming, prefix="upload-")
        self.path = Path(name)
        self._file = os.fdopen(descriptor, "wb")
        self._digest = hashlib.sha256()
        self._settings = settings
        self.bytes = 0

    def write(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        if self.bytes > self._settings.largest_pack_bytes:
            limit = self._settings.largest_pack_bytes >> 20
            raise IngestError(f"a packed file may have {limit:,} MiB at most.", TOO_LARGE)
        self._digest.update(chunk)
        self._file.write(chunk)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def flush(self) -> None:
        self._file.flush()

    def sync(self) -> None:
        """Make the content durable."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def publish(self) -> Path:
        """Give the synced file its own name, durably; until `settle` a mark says that it may have no row."""
        path = pack_path(self._settings, self.sha256)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        publishing_mark(self._settings, self.sha256).touch(mode=0o600)
        self.path.replace(path)
        _sync_folder(path.parent)
        _sync_folder(self._settings.packs)
        return path

    def settle(self) -> None:
        """Take the mark off, once the file's row is committed."""
        publishing_mark(self._settings, self.sha256).unlink(missing_ok=True)

    def close(self) -> None:
        try:
            # What is still to be written may find no room.
            with contextlib.suppress(OSError):
                self._file.close()
        finally:
            self.path.unlink(missing_ok=True)


def pack_path(settings: ServerSettings, sha256: str) -> Path:
    return settings.packs / sha256[:2] / f"{sha256}{SUFFIX}"


def publishing_mark(settings: ServerSettings, sha256: str) -> Path:
    """A file that is there from before a packed file gets its name until its row is committed."""
    return settings.incoming / f"{PUBLISHING}{sha256}"


def publishing(settings: ServerSettings) -> list[str]:
    """Return the digests of packed files whose push was cut off between the two."""
    names = (path.name for path in settings.incoming.glob(f"{PUBLISHING}*"))
    return sorted(name.removeprefix(PUBLISHING) for name in names)


def clear_incoming(settings: ServerSettings) -> None:
    """Remove what a server that was killed left half received; none of it was acknowledged."""
    shutil.rmtree(settings.incoming, ignore_errors=True)
    settings.incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.packs.mkdir(parents=True, exist_ok=True, mode=0o700)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


NAME = re.compile(rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}")
# A restore writes all files before the first row.
FRESH_SECONDS = 600.0
DIGESTS_AT_ONCE = 500


@dataclass(frozen=True)
class Unreferenced:
    """Digests of files without a row, and their size together."""

    digests: tuple[str, ...]
    bytes: int


def remove_unfinished(engine: Engine, settings: ServerSettings) -> Unreferenced:
    """Remove files whose push was cut off before its row was committed; none of them was acknowledged.

    For the start of a server: only marked files are looked at. Others without a row may be all that is left
    of runs whose database was set back, and go by `prune` only.
    """
    marked = [digest for digest in publishing(settings) if NAME.fullmatch(digest + SUFFIX)]
    return _remove(engine, settings, marked) if marked else Unreferenced((), 0)


def prune_unreferenced(engine: Engine, settings: ServerSettings, dry_run: bool = False) -> Unreferenced:
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


def forget_unreferenced(engine: Engine, settings: ServerSettings, digest: str) -> None:
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
        chosen = select(PackTable.sha256).where(PackTable.sha256.in_(rest[start : start + DIGESTS_AT_ONCE]))
        known.update(connection.execute(chosen).scalars())
    return [digest for digest in rest if digest not in known]


def _remove(engine: Engine, settings: ServerSettings, candidates: list[str]) -> Unreferenced:
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
            tokens.record(connection, "prune", digest, detail=f"{own} bytes that no run names")
            removed.append(digest)
            size += own
    return Unreferenced(tuple(removed), size)


def _stored_files(settings: ServerSettings) -> Iterator[str]:
    for path in settings.packs.glob(f"??/*{SUFFIX}"):
        if match := NAME.fullmatch(path.name):
            yield match[1]


def _is_fresh(settings: ServerSettings, digest: str) -> bool:
    return pack_path(settings, digest).stat().st_mtime > time.time() - FRESH_SECONDS


def _size(settings: ServerSettings, digest: str) -> int:
    return pack_path(settings, digest).stat().st_size


class Ingest:
    """Stores uploads; at most `checks_at_once` of them are checked at the same time."""

    def __init__(self, settings: ServerSettings, engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._turns = threading.BoundedSemaphore(settings.checks_at_once)

    def take(self, upload: Upload, identity: Identity, address: str) -> Stored:
        """Check, write durably and store; once this returns, the run survives a crash. IngestError else."""
        received = Received(upload.sha256, upload.bytes, identity, address)
        try:
            with reading(self._engine) as connection:
                before = known(connection, received)
            if before is not None:
                return before
            upload.flush()
            with self._turns:
                checked = check_isolated(upload.path, self._settings)
            upload.sync()
            try:
                with writing(self._engine) as connection:
                    stored = store(connection, checked, received)
                    if stored.new:
                        # Before the commit: a row must never name a file that is not there. Within the
                        # transaction: what is refused leaves no file, and nobody removes files meanwhile.
                        upload.publish()
            except (DBAPIError, OSError):
                # No room for the row: then the file must not stay either. Else the next start removes it.
                # Without a mark it never got its name, and a locked database would be waited for once more.
                if publishing_mark(self._settings, received.sha256).exists():
                    with contextlib.suppress(DBAPIError, OSError):
                        forget_unreferenced(self._engine, self._settings, received.sha256)
                raise
            upload.settle()
            return stored
        except DataError as error:
            refused = IngestError("the run has a value that the database cannot hold.")
            self._note(received, refused)
            raise refused from error
        except IngestError as error:
            if IMPOSSIBLE_BY_CLOCK in str(error) and self._clock_is_behind():
                raise IngestError(CLOCK.sentence, CLOCK.status) from error
            self._note(received, error)
            raise

    def _clock_is_behind(self) -> bool:
        """Whether a stored run begins at a time that is yet to come: then such a start proves nothing.

        By the clocks that measured, as this one may have been ahead when a file came in.
        """
        with reading(self._engine) as connection:
            newest = connection.execute(select(func.max(RunTable.created))).scalar_one()
        return newest is not None and newest > time.time() + AHEAD_SECONDS

    def _note(self, received: Received, error: IngestError) -> None:
        if error.status >= 500:
            return
        identity = received.identity
        # A full disk must not change what is answered.
        with contextlib.suppress(DBAPIError), writing(self._engine) as connection:
            tokens.record(
                connection, "push-refused", received.sha256, identity.name, received.address, str(error)
            )
