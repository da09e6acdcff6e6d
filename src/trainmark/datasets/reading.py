"""The bytes of a picture, wherever they lie; what cannot be read is told, never waited for."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from pathlib import Path

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
