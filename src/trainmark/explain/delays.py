"""What can make the host late: calls that wait for the device, and fetching the batch, in either pass."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile import DeviceKind, HostKind, HostSpans, Intervals, Profile, subtract, union

SYNCHRONIZATION = "synchronisation"
LOADER = "loader"

# Runtime and driver calls that return only after the device has finished something; allocating and freeing
# memory of the device waits for all of its work.
BLOCKING_CALL = re.compile(
    r"(cuda|hip)(Stream|Device|Event|Thread)Synchronize(_\w+)?"
    r"|cu(Stream|Ctx|Event)Synchronize(_\w+)?"
    r"|(cuda|hip)(Memcpy|MemcpyWithStream|Memcpy2D|Memset|MemcpyDtoH|MemcpyHtoD|MemcpyToSymbol|MemcpyFromSymbol)"
    r"|cuMemcpy(DtoH|HtoD)(_v2)?"
    r"|(cuda|hip)(Malloc|Free|FreeHost|MallocHost|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister)"
    r"|cuMem(Alloc|Free|FreeHost)(_v2)?"
)
COPY_CALL = re.compile(r"(cuda|hip|cu)Memcpy\w*")
# Fetching the batch: our own annotation, PyTorch's, and frames of loaders.
OWN_LOADER_ROW = "trainmark_data"
LOADER_ROW = re.compile(
    OWN_LOADER_ROW + r"|enumerate\(DataLoader\)#.*"
    r"|torch/utils/data/dataloader\.py\(\d+\): __next__"
    r"|(tensorflow/python/data/ops/iterator_ops|grain/.*|webdataset/.*)\.py\(\d+\): __next__"
)
STEP_ROW = re.compile(r"(trainmark_step|ProfilerStep)#\d+")
# A thread that launches less than this share of all does not feed the device: it prefetches or saves.
FEEDING_SHARE = 0.05


@dataclass
class Delay:
    """Host time on a thread that feeds the device; `row` is -1 where only another pass recorded it.

    `credit` is what of it has not been charged to a gap yet.
    """

    start: int
    end: int
    cause: str
    thread: int
    row: int
    name: str
    credit: int = field(init=False)
    place: str | None = None  # where in the program, once looked up

    def __post_init__(self) -> None:
        self.credit = self.end - self.start


def launch_rows(host: HostSpans) -> dict[int, int]:
    """Return the runtime row of each correlation id, the outermost where a driver call repeats it."""
    rows = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    return {int(host.launch[row]): int(row) for row in rows[::-1]}


def feeding_threads(profile: Profile) -> frozenset[int]:
    """Return the threads whose lateness the device feels: those with the steps, and those that launch."""
    host = profile.host
    annotations = _rows_named(host, STEP_ROW, (HostKind.ANNOTATION,))
    launching = np.isin(host.launch, profile.spans.launch[profile.spans.launch >= 0])
    threads, counts = np.unique(host.thread[launching & (host.kind == HostKind.RUNTIME)], return_counts=True)
    frequent = threads[counts >= FEEDING_SHARE * counts.sum()] if len(counts) else threads
    return frozenset(int(thread) for thread in (*np.unique(host.thread[annotations]), *frequent))


def blocking_rows(profile: Profile) -> npt.NDArray[np.int64]:
    """Return the runtime rows that waited for the device; a copy does where it outlasts its own transfer."""
    host, spans = profile.host, profile.spans
    rows = set(_rows_named(host, BLOCKING_CALL, (HostKind.RUNTIME,)).tolist())
    copies = spans.kind == DeviceKind.COPY
    copied = dict(zip(spans.launch[copies].tolist(), spans.end[copies].tolist(), strict=True))
    for row in _rows_named(host, COPY_CALL, (HostKind.RUNTIME,)).tolist():
        end = copied.get(int(host.launch[row]))
        if end is not None and host.end[row] >= end:
            rows.add(row)
    return np.array(sorted(rows), np.int64)


def synchronizations(profile: Profile, threads: frozenset[int]) -> list[Delay]:
    """Return the blocking calls of these threads by start; a call inside another counts as part of it."""
    host, delays = profile.host, []
    reached: dict[int, int] = {}
    for row in blocking_rows(profile).tolist():
        thread, start, end = int(host.thread[row]), int(host.start[row]), int(host.end[row])
        if thread in threads and end > max(start, reached.get(thread, start)):
            start = max(start, reached.get(thread, start))
            delays.append(Delay(start, end, SYNCHRONIZATION, thread, row, host.names[host.name[row]]))
            reached[thread] = end
    return delays


def loader_delays(profile: Profile, threads: frozenset[int]) -> list[Delay]:
    """Return the time of these threads inside the loader, without its calls that wait for the device."""
    host, delays = profile.host, []
    waits = synchronizations(profile, threads)
    kinds = (HostKind.ANNOTATION, HostKind.OPERATOR, HostKind.PYTHON)
    chosen = _rows_named(host, LOADER_ROW, kinds)
    for thread in sorted(threads):
        rows = chosen[host.thread[chosen] == thread]
        inside = union(host.start[rows], host.end[rows])
        for start, end in zip(*_without(inside, waits, thread), strict=True):
            # The annotation names it, where there is one: rows are by start, the outermost first.
            row = int(rows[np.flatnonzero((host.start[rows] <= start) & (host.end[rows] > start))[0]])
            name = host.names[host.name[row]]
            delays.append(Delay(int(start), int(end), LOADER, thread, row, name))
    return sorted(delays, key=lambda delay: (delay.start, delay.end))


def _without(inside: Intervals, waits: list[Delay], thread: int) -> Intervals:
    own = [wait for wait in waits if wait.thread == thread]
    start = np.array([wait.start for wait in own], np.int64)
    return subtract(inside, union(start, np.array([wait.end for wait in own], np.int64)))


def _rows_named(
    host: HostSpans, pattern: re.Pattern[str], kinds: tuple[HostKind, ...]
) -> npt.NDArray[np.int64]:
    names = [index for index, name in enumerate(host.names) if pattern.fullmatch(name)]
    return np.flatnonzero(np.isin(host.name, names) & np.isin(host.kind, [int(kind) for kind in kinds]))


Key = tuple[int, str, int]  # the step's index, the kernel's name, which of its launches in the step


class PassMatch:
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
