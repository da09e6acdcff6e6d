"""A file as memory: only the pages that are looked at are read, and the kernel may drop them again."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def mapped(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")
            return
        # Unmapped when the last view of it goes: a view in a traceback must not be pulled from under it.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
