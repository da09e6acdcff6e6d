"""Packed files on disk, written whole and durably; and what follows from one, as plain values."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.server.faults import FULL
from trainmark.server.settings import ServerSettings

REFUSED, TOO_LARGE, CONFLICT, FORBIDDEN = 422, 413, 409, 403


class IngestError(UserError):
    """A packed file that is refused: a sentence, the status of HTTP, and what does not follow."""

    def __init__(self, sentence: str, status: int = REFUSED, differences: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.status, self.differences = status, differences


@dataclass(frozen=True)
class CheckedResult:
    """One result: the columns of its case, of its result, its facts, and the trials it is made of."""

    case: dict[str, Any]
    result: dict[str, Any]
    facts: dict[str, str]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class CheckedRun:
    """The rows of a run; every number in them was computed from the events."""

    run: dict[str, Any]
    machine: dict[str, Any]
    lines: tuple[CheckedResult, ...]
    trials: tuple[dict[str, Any], ...]
    signer: str | None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), allow_nan=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> CheckedRun:
        plain = json.loads(data)
        lines = tuple(
            CheckedResult(**{**line, "trials": tuple(line["trials"])}) for line in plain.pop("lines")
        )
        return cls(**{**plain, "lines": lines, "trials": tuple(plain["trials"])})


SUFFIX = ".trainmark"
PUBLISHING = "publishing-"
KEPT_FREE_BYTES, KEPT_FREE_PART = 64 << 20, 20


class Upload:
    """A file that is being received; it becomes a packed file by `publish`, or is gone after `close`."""

    def __init__(self, settings: ServerSettings) -> None:
        settings.incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        if room_bytes(settings) <= 0:
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


def room_bytes(settings: ServerSettings) -> int:
    """Return how much a push may take of the disk: what is kept is for rows, sessions and the audit log."""
    usage = shutil.disk_usage(settings.incoming)
    return usage.free - min(KEPT_FREE_BYTES, usage.total // KEPT_FREE_PART)


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
