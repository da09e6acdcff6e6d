"""Finds in the detailed pass what the timing pass, which has no operators and no Python, only hints at."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from trainmark.explain.idle.delays import Delay, blocking_rows, feeding_threads, launch_rows, loader_delays
from trainmark.explain.profile.model import HostKind, Profile

Key = tuple[int, str, int]  # the step's index, the kernel's name, which of its launches in the step


class Match:
    """Rows of two passes over the same program; a span is known by its name and its count in the step."""

    def __init__(self, profile: Profile, detail: Profile) -> None:
        self.profile, self.detail = profile, detail
        self._keys, self._detail_keys = _keys(profile), _keys(detail)
        self._spans = {key: span for span, key in self._keys.items()}
        self._detail_spans = {key: span for span, key in self._detail_keys.items()}
        self._launches, self._detail_launches = launch_rows(profile.host), launch_rows(detail.host)
        self._detail_span_of = _first_spans(detail)
        self._launched = sorted(
            (int(profile.host.start[self._launches[correlation]]), span)
            for correlation, span in _first_spans(profile).items()
            if correlation in self._launches
        )
        self._launch_times = np.array([moment for moment, _ in self._launched], np.int64)
        self.fetches = loader_delays(detail, feeding_threads(detail))
        self._blocking = _rows_by_name(detail, blocking_rows(detail))

    def launch(self, span: int) -> int | None:
        """Return the detail's runtime row that launched this span of the profile."""
        if span not in self._keys:
            return None
        step, name, count = self._keys[span]
        twin = self._detail_spans.get((min(step, len(self.detail.steps) - 1), name, count))
        return None if twin is None else self._detail_launches.get(int(self.detail.spans.launch[twin]))

    def blocking(self, row: int) -> int | None:
        """Return the detail's row of this blocking call: the last of its name before the next launch."""
        host = self.profile.host
        alike = self._blocking.get(host.names[host.name[row]])
        if alike is None:
            return None
        after = int(np.searchsorted(self._launch_times, host.end[row]))
        launched = self.launch(self._launched[after][1]) if after < len(self._launched) else None
        if launched is None:
            return int(alike[0])
        before = int(np.searchsorted(self.detail.host.start[alike], self.detail.host.start[launched]))
        return int(alike[max(before - 1, 0)])

    def loader(self) -> list[Delay]:
        """Return the loader's time of the detail where the timing pass has room for it.

        It lies between the runtime calls around it; its length is the detail's, or less where the calls of
        the timing pass are closer together.
        """
        return [placed for fetch in self.fetches if (placed := self._place(fetch)) is not None]

    def _place(self, delay: Delay) -> Delay | None:
        calls = _runtime_rows(self.detail, delay.thread)
        starts, ends = self.detail.host.start[calls], self.detail.host.end[calls]
        before = int(np.searchsorted(ends, delay.start, side="right")) - 1
        candidates = range(int(np.searchsorted(starts, delay.end)), len(calls))
        twins = ((place, self._own_row(int(calls[place]))) for place in candidates)
        after, row = next(((place, own) for place, own in twins if own is not None), (-1, -1))
        if row < 0 or before < 0:
            return None
        host = self.profile.host
        own_calls = _runtime_rows(self.profile, int(host.thread[row]))
        previous = int(np.searchsorted(own_calls, row)) - (after - before)
        if previous < 0:
            return None
        low = int(host.end[own_calls[previous]])
        wanted, room = delay.end - delay.start, int(host.start[row]) - low
        if room <= 0:
            return None
        spare = int(starts[after] - ends[before]) - wanted
        share = (delay.start - int(ends[before])) / spare if spare > 0 else 0.0
        start = low + int(max(room - wanted, 0) * share)
        return Delay(start, start + min(wanted, room), delay.cause, int(host.thread[row]), -1, delay.name)

    def _own_row(self, detail_row: int) -> int | None:
        """Return the profile's runtime row for a row of the detail that launched something."""
        span = self._detail_span_of.get(int(self.detail.host.launch[detail_row]), -1)
        own = self._spans.get(self._detail_keys.get(span, (-1, "", 0)))
        return None if own is None else self._launches.get(int(self.profile.spans.launch[own]))


def _keys(profile: Profile) -> dict[int, Key]:
    """Return the key of each span that begins inside a step."""
    spans, keys = profile.spans, {}
    for index, step in enumerate(profile.steps):
        low, high = np.searchsorted(spans.start, [step.start, step.end])
        seen: Counter[str] = Counter()
        for span in range(int(low), int(high)):
            name = spans.names[spans.name[span]]
            keys[span] = (index, name, seen[name])
            seen[name] += 1
    return keys


def _first_spans(profile: Profile) -> dict[int, int]:
    """Return the first span of each correlation id."""
    launches = profile.spans.launch.tolist()
    return {launch: span for span, launch in reversed(list(enumerate(launches))) if launch >= 0}


def _runtime_rows(profile: Profile, thread: int) -> npt.NDArray[np.int64]:
    return np.flatnonzero((profile.host.kind == HostKind.RUNTIME) & (profile.host.thread == thread))


def _rows_by_name(profile: Profile, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
    names = profile.host.name[rows]
    return {profile.host.names[name]: rows[names == name] for name in np.unique(names)}
