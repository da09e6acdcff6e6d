"""A parcel: a folder as one archive, named by its content, so that a node is sent only what it lacks."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PIECE_BYTES = 1 << 20
LEFT_OUT = frozenset({"__pycache__", ".git", ".venv", "runs", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


@dataclass(frozen=True)
class Parcel:
    """`folder` is what it stands for here; `name` and `sha256` are its content's."""

    folder: Path
    data: bytes
    name: str
    sha256: str

    def pieces(self) -> Iterator[bytes]:
        for start in range(0, len(self.data), PIECE_BYTES):
            yield self.data[start : start + PIECE_BYTES]


def parcel_of(folder: Path) -> Parcel:
    """The same bytes for the same content, whenever and by whomever it was written."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(_files(folder)):
            entry = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            with path.open("rb") as file:
                archive.addfile(entry, file)
    packed = data.getvalue()
    digest = hashlib.sha256(packed).hexdigest()
    return Parcel(folder, packed, digest, digest)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path
