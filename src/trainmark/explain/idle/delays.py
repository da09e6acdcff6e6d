"""What can make the host late: calls that wait for the device, and fetching the batch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trainmark.explain.intervals import Intervals, subtract, union
from trainmark.explain.profile.model import DeviceKind, HostKind, HostSpans, Profile

SYNCHRONISATION = "synchronisation"
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


def synchronisations(profile: Profile, threads: frozenset[int]) -> list[Delay]:
    """Return the blocking calls of these threads by start; a call inside another counts as part of it."""
    host, delays = profile.host, []
    reached: dict[int, int] = {}
    for row in blocking_rows(profile).tolist():
        thread, start, end = int(host.thread[row]), int(host.start[row]), int(host.end[row])
        if thread in threads and end > max(start, reached.get(thread, start)):
            start = max(start, reached.get(thread, start))
            delays.append(Delay(start, end, SYNCHRONISATION, thread, row, host.names[host.name[row]]))
            reached[thread] = end
    return delays


def loader_delays(profile: Profile, threads: frozenset[int]) -> list[Delay]:
    """Return the time of these threads inside the loader, without its calls that wait for the device."""
    host, delays = profile.host, []
    waits = synchronisations(profile, threads)
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
