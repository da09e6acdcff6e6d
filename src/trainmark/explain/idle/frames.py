"""Python frames as the profiler names them: which one is the user's, and which builtin it stood in."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trainmark.explain.profile.model import HostKind, HostSpans, Indices

# "train.py(31): main"; the profiler gives the line on which the function begins.
FRAME = re.compile(r"(?P<file>.+)\(\d+\): .+")
BUILTIN = re.compile(r"<built-in (?:function|method) (?P<name>\w+)")
# Frames of the framework, of this program's own watching, and of the interpreter.
LIBRARIES = frozenset(
    {"torch", "torchvision", "jax", "jaxlib", "numpy", "keras", "tensorflow", "paddle", "typing_extensions"}
)
# The second and third: traces of earlier versions.
OWN_FRAMES = ("trainmark/inside/", "trainmark/profiler/", "trainmark/hooks/", "trainmark/probe.py")
# A stretch of time is looked at in its middle, a long one at several moments.
LOOKS = 9
LONG = 100_000
MOST_DEPTH = 500  # rows in one another that are looked at: a stack of Python has a tenth of it


class Stand(NamedTuple):
    """Where a thread was: the innermost frame of the user's code and the builtin called from there."""

    line: str | None
    builtin: str | None

    def text(self) -> str | None:
        return f"{self.builtin} at {self.line}" if self.builtin and self.line else self.line or self.builtin


class Nesting:
    """The rows of one thread and kind, each with the row that encloses it."""

    def __init__(self, host: HostSpans, rows: Indices) -> None:
        self._rows = rows.tolist()
        self._start: list[int] = host.start[rows].tolist()
        self._end: list[int] = host.end[rows].tolist()
        self._parent = _parents(self._start, self._end)

    def enclosing(self, moment: int) -> list[int]:
        """Return the rows that run at this moment, the innermost first, of very many the inner ones."""
        at = bisect_right(self._start, moment) - 1
        rows = []
        for _ in range(MOST_DEPTH):
            if at < 0:
                break
            if self._end[at] > moment:
                rows.append(self._rows[at])
            at = self._parent[at]
        return rows


class Stacks:
    """Finds what a thread was inside of, by kind of row."""

    def __init__(self, host: HostSpans) -> None:
        self._host = host
        self._nestings: dict[tuple[int, HostKind], Nesting] = {}

    def names(self, kind: HostKind, thread: int, moment: int) -> list[str]:
        return [self._host.names[self._host.name[row]] for row in self.rows(kind, thread, moment)]

    def rows(self, kind: HostKind, thread: int, moment: int) -> list[int]:
        key = thread, kind
        if key not in self._nestings:
            chosen = np.flatnonzero((self._host.thread == thread) & (self._host.kind == kind))
            self._nestings[key] = Nesting(self._host, chosen.astype(np.int32))
        return self._nestings[key].enclosing(moment)

    def stand(self, thread: int, start: int, end: int) -> Stand:
        """Return where the thread mostly was between two moments."""
        if end - start < LONG:
            return stand_of(self.names(HostKind.PYTHON, thread, (start + end) // 2))
        moments = [start + (end - start) * look // (LOOKS + 1) for look in range(1, LOOKS + 1)]
        stands = Counter(stand_of(self.names(HostKind.PYTHON, thread, moment)) for moment in moments)
        return stands.most_common(1)[0][0]

    def operator(self, thread: int, moment: int) -> str | None:
        """Return the outermost operator, without the engine that calls backward functions."""
        names = self.names(HostKind.OPERATOR, thread, moment)
        calls = [name for name in names if not name.startswith("autograd::engine::")]
        return calls[-1] if calls else None


def stand_of(names: list[str]) -> Stand:
    """Return the user's frame and the builtin from a stack, the innermost first."""
    builtin = None
    if names and (match := BUILTIN.match(names[0])):
        builtin = match["name"]
    return Stand(next((name for name in names if is_users(name)), None), builtin)


@lru_cache(10_000)
def is_users(name: str) -> bool:
    match = FRAME.fullmatch(name)
    if match is None or name.startswith(("<", "nn.Module", *OWN_FRAMES)):
        return False
    file = match["file"]
    if "site-packages/" in file or "dist-packages/" in file or "/lib/python" in file:
        return False
    top = file.split("/")[0].removesuffix(".py")
    return top not in LIBRARIES and top not in sys.stdlib_module_names


def _parents(starts: list[int], ends: list[int]) -> list[int]:
    parents, open_rows = [], [-1]
    for row, start in enumerate(starts):
        while open_rows[-1] >= 0 and ends[open_rows[-1]] <= start:
            open_rows.pop()
        parents.append(open_rows[-1])
        open_rows.append(row)
    return parents
