"""Files of a set: under their final name only when whole, mapped as memory, read by place, summed up."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

PART_ENDING = ".part"
# Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


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


def part_of(path: Path) -> Path:
    """Of this process only: two that write the same file do not write into each other's."""
    return path.with_name(f".{path.name}.{os.getpid()}{PART_ENDING}")


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART_ENDING)


def lines_of(names: Iterable[str]) -> bytes:
    """A line for each name, which need not be UTF-8."""
    return "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]


def copy_into(write: Callable[[bytes], object], path: Path) -> None:
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            write(chunk)


@contextlib.contextmanager
def open_descriptor(path: Path) -> Iterator[int]:
    """A descriptor to read from at any place."""
    descriptor = os.open(path, READ)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def mapped_file(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")
            return
        # Unmapped when the last view of it goes: a view in a traceback must not be pulled from under it.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


OPEN_FILES = 64


class Shards:
    """Reads out of a few files at a time, by their place in `names`."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names
        self._open: OrderedDict[int, int] = OrderedDict()

    def read(self, shard: int, offset: int, size: int) -> bytes:
        """Fewer bytes than `size` where the file ends before."""
        return os.pread(self._descriptor(shard), size, offset)

    def _descriptor(self, shard: int) -> int:
        if shard not in self._open:
            if len(self._open) >= OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
            self._open[shard] = os.open(self._folder / self._names[shard], READ)
        self._open.move_to_end(shard)
        return self._open[shard]

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


CHUNK = 1 << 20
CHECKSUMS = "checksums.txt"
# Strict, so that every flipped byte of the list shows: lower case, two blanks.
CHECKSUM_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n", re.DOTALL)


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def checksum_of(path: Path) -> str:
    summed = hashlib.sha256()
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            summed.update(view[:count])
    return summed.hexdigest()


def checksum_line(checksum: str, path: str) -> bytes:
    """A line in the form that `sha256sum --check` reads."""
    return lines_of([f"{checksum}  {path}"])


def write_checksums(root: Path, sums: Mapping[str, str]) -> None:
    """By path, sorted."""
    with whole_file(root / CHECKSUMS) as file:
        file.writelines(checksum_line(sums[path], path) for path in sorted(sums))


def read_checksums(path: Path) -> Iterator[tuple[int, str, str]]:
    """The number of each line, the checksum and the path; both are "" where it is no such line."""
    with path.open("rb") as lines:
        for number, entry in enumerate(lines, 1):
            if match := CHECKSUM_LINE.fullmatch(entry):
                yield number, match[1].decode(), match[2].decode("utf-8", "surrogateescape")
            else:
                yield number, "", ""
