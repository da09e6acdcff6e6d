"""What names a cause of idle time: the call, the operator, the line of Python, how often and how long."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trainmark.explain.delays import OWN_LOADER_ROW, Delay, PassMatch
from trainmark.explain.profile import HostKind, HostSpans, Indices, Profile
from trainmark.view.message import Message, _, joined

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


class CodePlace(NamedTuple):
    """Where a thread was: the innermost frame of the user's code and the builtin called from there."""

    line: str | None
    builtin: str | None

    def text(self) -> str | None:
        return f"{self.builtin} at {self.line}" if self.builtin and self.line else self.line or self.builtin


class ThreadRows:
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
        for _depth in range(MOST_DEPTH):
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
        self._nestings: dict[tuple[int, HostKind], ThreadRows] = {}

    def names(self, kind: HostKind, thread: int, moment: int) -> list[str]:
        return [self._host.names[self._host.name[row]] for row in self.rows(kind, thread, moment)]

    def rows(self, kind: HostKind, thread: int, moment: int) -> list[int]:
        key = thread, kind
        if key not in self._nestings:
            chosen = np.flatnonzero((self._host.thread == thread) & (self._host.kind == kind))
            self._nestings[key] = ThreadRows(self._host, chosen.astype(np.int32))
        return self._nestings[key].enclosing(moment)

    def stand(self, thread: int, start: int, end: int) -> CodePlace:
        """Return where the thread mostly was between two moments."""
        if end - start < LONG:
            return code_place(self.names(HostKind.PYTHON, thread, (start + end) // 2))
        moments = [start + (end - start) * look // (LOOKS + 1) for look in range(1, LOOKS + 1)]
        stands = Counter(code_place(self.names(HostKind.PYTHON, thread, moment)) for moment in moments)
        return stands.most_common(1)[0][0]

    def operator(self, thread: int, moment: int) -> str | None:
        """Return the outermost operator, without the engine that calls backward functions."""
        names = self.names(HostKind.OPERATOR, thread, moment)
        calls = [name for name in names if not name.startswith("autograd::engine::")]
        return calls[-1] if calls else None


def code_place(names: list[str]) -> CodePlace:
    """Return the user's frame and the builtin from a stack, the innermost first."""
    builtin = None
    if names and (match := BUILTIN.match(names[0])):
        builtin = match["name"]
    return CodePlace(next((name for name in names if is_users(name)), None), builtin)


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


# As many places are named for a cause; the rest is small.
MOST_PLACES = 3
LONGEST_NAME = 60


class Witness:
    """Looks at the profile itself, or at the detailed pass where the profile is bare of operators."""

    def __init__(self, profile: Profile, detail: Profile | None) -> None:
        self.profile = profile
        self.match = PassMatch(profile, detail) if detail is not None and detail is not profile else None
        self._stacks = Stacks((detail or profile).host)
        self._host = (detail or profile).host

    def of_blocking(self, delay: Delay) -> str:
        row = delay.row if self.match is None else self.match.blocking(delay.row)
        if row is None:
            return delay.name
        thread, moment = int(self._host.thread[row]), int(self._host.start[row])
        operator = self._stacks.operator(thread, moment)
        line = self._stacks.stand(thread, moment, int(self._host.end[row])).line
        call = f"{operator} → {delay.name}" if operator else delay.name
        return f"{call} at {line}" if line else call

    def of_loader(self, delay: Delay) -> str:
        """Name the line inside the loader; one fetch of the detailed pass speaks for all."""
        if self.match is not None:
            fetches = [fetch for fetch in self.match.fetches if fetch.name == delay.name]
            if not fetches:
                return _fetch_name(delay)
            delay = max(fetches, key=lambda fetch: fetch.end - fetch.start)
        name, place = _fetch_name(delay), self._stacks.stand(delay.thread, delay.start, delay.end).text()
        return _("{name}: {place}", name=name, place=place) if place else name

    def of_launch(self, span: int, row: int, start: int, end: int) -> str:
        """Name where the host was between two moments, and at the launch where that says nothing."""
        if self.match is None:
            thread = int(self._host.thread[row])
            first, last, at = start, end, int(self._host.start[row])
        else:
            twin = self.match.launch(span)
            if twin is None:
                return _before(self.span_name(span))
            thread, at = int(self._host.thread[twin]), int(self._host.start[twin])
            first, last = at - (end - start), at
        place = (
            self._stacks.stand(thread, first, last).text() or self._stacks.stand(thread, at, at + 1).text()
        )
        return place or self._stacks.operator(thread, at) or _before(self.span_name(span))

    def of_python(self, thread: int, start: int, end: int) -> str | None:
        return self._stacks.stand(thread, start, end).text()

    def span_name(self, span: int) -> str:
        spans = self.profile.spans
        return short_name(spans.names[int(spans.name[span])])


class PlaceTally:
    """Adds up what was charged at each place."""

    def __init__(self) -> None:
        self._nanoseconds: dict[str, int] = defaultdict(int)
        self._events: dict[str, set[int]] = defaultdict(set)

    def add(self, place: str, nanoseconds: int, event: int) -> None:
        """`event` tells one call or gap from another: several charges of one count once."""
        self._nanoseconds[place] += nanoseconds
        self._events[place].add(event)

    def sentences(self, steps: int) -> Iterable[str]:
        """Yield the places of a step, the longest first: how often and how long in one."""
        ordered = sorted(self._nanoseconds.items(), key=lambda item: (-item[1], item[0]))
        for place, nanoseconds in ordered[:MOST_PLACES]:
            count = round(len(self._events[place]) / steps, 1)
            yield joined([place, f"{count:,g}×", milliseconds(nanoseconds / steps)], " · ")


def _before(kernel: str) -> Message:
    return _("before {kernel}", kernel=kernel)


def _fetch_name(delay: Delay) -> str:
    return _("next batch") if delay.name == OWN_LOADER_ROW else delay.name


def short_name(kernel: str) -> str:
    """Return a kernel's name without template arguments and parameters, cut where it is long."""
    bare = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    if not bare.startswith(("Memcpy", "Memset")):
        bare = bare.split("<", 1)[0].split("(", 1)[0] or bare
    return bare if len(bare) <= LONGEST_NAME else bare[: LONGEST_NAME - 1] + "…"


def milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.3f} ms"
