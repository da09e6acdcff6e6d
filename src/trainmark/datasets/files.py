"""Files that have their final name only when they are whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PART = ".part"


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Writes under another name in the same folder; the name comes with the end, or nothing is left.

    Without fsync: a set is checked by its checksums, and a million small syncs take hours.
    """
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor to read from at any place."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        yield fd
    finally:
        os.close(fd)


def part_of(path: Path) -> Path:
    """Of this process only: two that write the same file do not write into each other's."""
    return path.with_name(f".{path.name}.{os.getpid()}{PART}")


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART)
