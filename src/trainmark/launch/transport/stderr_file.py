"""What carriers print for people: all of it in one file without a name, each carrier at its own offset.

A file for each would be a descriptor for each, and named files would be left behind by a harness that is
killed. Where there is no memfd (Linux has it), it is a file for each.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from functools import lru_cache

TAIL_BYTES = 4096
# The file is sparse: what nobody writes takes no room.
REGION_BYTES = 1 << 30
SHARED = hasattr(os, "memfd_create")
_numbers = itertools.count()


class StderrFile:
    """One carrier's part of it."""

    def __init__(self) -> None:
        self._file = _shared_file() if SHARED else _unnamed_file()
        self._start = next(_numbers) * REGION_BYTES if SHARED else 0

    def open(self) -> int:
        """A descriptor to be a carrier's stderr; whoever opens it closes it."""
        if not SHARED:
            return os.dup(self._file)
        # A file description of its own, so that its offset is its own too.
        descriptor = os.open(f"/proc/self/fd/{self._file}", os.O_WRONLY)
        os.lseek(descriptor, self._start, os.SEEK_SET)
        return descriptor

    def last_line(self) -> str:
        """Empty where nothing was printed."""
        try:
            end = os.lseek(self._file, self._start, os.SEEK_HOLE) if SHARED else os.fstat(self._file).st_size
        except OSError:  # beyond what anybody wrote
            return ""
        start = max(self._start, end - 2 * TAIL_BYTES)  # holes begin at whole pages
        tail = os.pread(self._file, end - start, start).rstrip(b"\0")[-TAIL_BYTES:]
        lines = [line.strip() for line in tail.decode("utf-8", "replace").split("\n") if line.strip()]
        return lines[-1] if lines else ""

    def close(self) -> None:
        if not SHARED:
            os.close(self._file)


@lru_cache
def _shared_file() -> int:
    return os.memfd_create("trainmark-stderr")


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
