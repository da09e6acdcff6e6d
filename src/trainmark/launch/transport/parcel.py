"""A folder as one archive, named by its content, so that a node is sent only what it lacks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PIECE_BYTES = 1 << 20
LEFT_OUT = frozenset({"__pycache__", ".git", ".venv", "runs", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


@dataclass(frozen=True)
class FolderArchive:
    """`folder` is what it stands for here; `name` is its content's; `there` are nodes that have it."""

    folder: Path
    name: str
    pieces: Callable[[], Iterator[bytes]]
    there: frozenset[str] = frozenset()


def archive_of(folder: Path) -> FolderArchive:
    """Of a folder of code: the same bytes for the same content, whenever and by whomever it was written."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(_files(folder)):
            entry = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            with path.open("rb") as file:
                archive.addfile(entry, file)
    packed = data.getvalue()
    cuts = range(0, len(packed), PIECE_BYTES)
    name = hashlib.sha256(packed).hexdigest()
    return FolderArchive(folder, name, lambda: (packed[start : start + PIECE_BYTES] for start in cuts))


def archive_of_environment(folder: Path, content: str, there: frozenset[str]) -> FolderArchive:
    """Of gigabytes, packed while it is sent; `content` is the hash that nodes compare such folders by."""

    def pieces() -> Iterator[bytes]:
        read, write = os.pipe()
        packer = threading.Thread(target=_pack, args=(folder, write), daemon=True)
        packer.start()
        with os.fdopen(read, "rb") as packed:
            yield from iter(lambda: packed.read(PIECE_BYTES), b"")
        packer.join()

    return FolderArchive(folder, content, pieces, there)


def _pack(folder: Path, write: int) -> None:
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(write, "wb") as out,
        tarfile.open(fileobj=out, mode="w|") as archive,
    ):
        archive.add(folder, arcname=".", filter=lambda entry: None if "__pycache__" in entry.name else entry)


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
