"""Where the environments lie, and the marker without which a folder is none."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from trainmark.home import home

MARKER = "trainmark.json"


@dataclass(frozen=True)
class Marker:
    """Written as the last act of an install: the version as imported, the Python, the digest of the lock."""

    framework: str
    version: str
    python: str
    lock: str
    installed: str


@dataclass(frozen=True)
class EnvironmentFiles:
    """The files of one framework; `former` is the environment that an install will replace."""

    name: str

    @property
    def folder(self) -> Path:
        return home() / "environments" / self.name

    @property
    def former(self) -> Path:
        return self.folder.with_name(f".{self.name}.former")

    @property
    def guard(self) -> Path:
        return self.folder.with_name(f".{self.name}.lock")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.name}.log")

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


def marker_of(folder: Path) -> Marker | None:
    """None for a folder that no install has finished."""
    try:
        return Marker(**json.loads((folder / MARKER).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def mark(folder: Path, marker: Marker) -> None:
    """Makes it an environment; what was installed is on the disk before the marker is."""
    os.sync()
    part = folder / f".{MARKER}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump(asdict(marker), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MARKER)
    _sync(folder)


def unmark(folder: Path) -> None:
    """From here on it is no environment, however far its removal comes."""
    with contextlib.suppress(FileNotFoundError):
        (folder / MARKER).unlink()
        _sync(folder)


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
