"""What names a cause: the call, the operator, the line of Python, how often and how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from trainmark.explain.idle.delays import OWN_LOADER_ROW, Delay
from trainmark.explain.idle.frames import Stacks
from trainmark.explain.idle.matching import Match
from trainmark.explain.profile.model import Profile

# As many places are named for a cause; the rest is small.
MOST_PLACES = 3
LONGEST_NAME = 60


class Witness:
    """Looks at the profile itself, or at the detailed pass where the profile is bare of operators."""

    def __init__(self, profile: Profile, detail: Profile | None) -> None:
        self.profile = profile
        self.match = Match(profile, detail) if detail is not None and detail is not profile else None
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
        place = self._stacks.stand(delay.thread, delay.start, delay.end).text()
        return f"{_fetch_name(delay)}: {place}" if place else _fetch_name(delay)

    def of_launch(self, span: int, row: int, start: int, end: int) -> str:
        """Name where the host was between two moments, and at the launch where that says nothing."""
        if self.match is None:
            thread = int(self._host.thread[row])
            first, last, at = start, end, int(self._host.start[row])
        else:
            twin = self.match.launch(span)
            if twin is None:
                return f"before {self.span_name(span)}"
            thread, at = int(self._host.thread[twin]), int(self._host.start[twin])
            first, last = at - (end - start), at
        place = (
            self._stacks.stand(thread, first, last).text() or self._stacks.stand(thread, at, at + 1).text()
        )
        return place or self._stacks.operator(thread, at) or f"before {self.span_name(span)}"

    def of_python(self, thread: int, start: int, end: int) -> str | None:
        return self._stacks.stand(thread, start, end).text()

    def span_name(self, span: int) -> str:
        spans = self.profile.spans
        return short_name(spans.names[int(spans.name[span])])


class Tally:
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
            yield f"{place} · {count:,g}× · {milliseconds(nanoseconds / steps)}"


def _fetch_name(delay: Delay) -> str:
    return "next batch" if delay.name == OWN_LOADER_ROW else delay.name


def short_name(kernel: str) -> str:
    """Return a kernel's name without template arguments and parameters, cut where it is long."""
    bare = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    if not bare.startswith(("Memcpy", "Memset")):
        bare = bare.split("<", 1)[0].split("(", 1)[0] or bare
    return bare if len(bare) <= LONGEST_NAME else bare[: LONGEST_NAME - 1] + "…"


def milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.3f} ms"
