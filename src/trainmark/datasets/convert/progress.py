"""How far a task is, for whoever watches: a number for each, in a file that all processes share."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import numpy as np

NUMBER = struct.Struct("<Q")
FILE = "progress"


def prepare(journal: Path, tasks: int) -> None:
    (journal / FILE).write_bytes(bytes(NUMBER.size * max(tasks, 1)))


def so_far(journal: Path) -> int:
    """Pictures that are done, over all tasks."""
    try:
        return int(np.fromfile(journal / FILE, "<u8").sum())
    except OSError:
        return 0


class Counter:
    """A task's own number."""

    def __init__(self, journal: Path, slot: int) -> None:
        with (journal / FILE).open("r+b") as file:
            self._pages = mmap.mmap(file.fileno(), 0)
        self._at = slot * NUMBER.size
        self._value = 0

    def add(self, count: int) -> None:
        self.finish(self._value + count)

    def finish(self, value: int) -> None:
        self._value = value
        NUMBER.pack_into(self._pages, self._at, value)

    def close(self) -> None:
        self._pages.close()
