"""Files of a set: under their final name only when whole, mapped as memory, or read by place."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PART_ENDING = ".part"


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
def open_descriptor(path: Path) -> Iterator[int]:
    """A descriptor to read from at any place."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        yield fd
    finally:
        os.close(fd)


def part_of(path: Path) -> Path:
    """Of this process only: two that write the same file do not write into each other's."""
    return path.with_name(f".{path.name}.{os.getpid()}{PART_ENDING}")


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART_ENDING)


@contextlib.contextmanager
def mapped_file(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")
            return
        # Unmapped when the last view of it goes: a view in a traceback must not be pulled from under it.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


OPEN_FILES = 64


class NoFileError(OSError):
    """Not a plain file: a pipe, a device, a folder."""


def read_file(path: str, largest: int) -> bytes | None:
    """All of a plain file; None where it is larger than `largest`."""
    # Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NoFileError(0, "not a plain file", path)
        if status.st_size > largest:
            return None
        content = os.read(descriptor, status.st_size + 1)
        while len(content) < status.st_size and (more := os.read(descriptor, status.st_size - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)


class Shards:
    """Reads out of a few files at a time, by their place in `names`."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names
        self._open: OrderedDict[int, int] = OrderedDict()

    def read(self, shard: int, offset: int, size: int) -> bytes:
        """Fewer bytes than `size` where the file ends before."""
        return os.pread(self._descriptor(shard), size, offset)

    def _descriptor(self, shard: int) -> int:
        if shard in self._open:
            self._open.move_to_end(shard)
            return self._open[shard]
        if len(self._open) >= OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])
        descriptor = os.open(self._folder / self._names[shard], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._open[shard] = descriptor
        return descriptor

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])
