"""How long the host takes to issue a step, were it never stopped: what remains when kernels get shorter."""

from __future__ import annotations

import re
import statistics

import numpy as np

from trainmark.explain.profile.model import HostKind, Profile

STEP = re.compile(r"(trainmark_step|ProfilerStep)#\d+")
# Calls that wait for the device.
BLOCKING = re.compile(r"Synchronize|^(cuda|cu)Memcpy(?!.*Async)|EventQuery")
LAUNCHING = re.compile(r"Launch|MemcpyAsync|MemsetAsync")
# A launch takes a few microseconds; one that takes longer waits for room in the queue.
LONGEST_LAUNCH = 20_000  # ns


def host_seconds(profile: Profile) -> float | None:
    """Return the median over steps of the host's time without waiting for the device; None without marks.

    Profiling makes the host slower by a microsecond or two for each launch, so that this is a little high.
    """
    host = profile.host
    names = host.names
    steps = [index for index, name in enumerate(names) if STEP.fullmatch(name)]
    marks = np.flatnonzero(np.isin(host.name, steps) & (host.kind == HostKind.ANNOTATION))
    calls = np.flatnonzero(host.kind == HostKind.RUNTIME)
    if profile.device != "cuda" or not len(marks) or not len(calls):
        return None
    waits = np.array([_waiting(names[host.name[row]], int(host.end[row] - host.start[row])) for row in calls])
    total = np.concatenate([[0], np.cumsum(waits)])
    starts = host.start[calls]
    busy = []
    for row in marks:
        first, last = np.searchsorted(starts, [host.start[row], host.end[row]])
        busy.append(int(host.end[row] - host.start[row]) - int(total[last] - total[first]))
    return max(0.0, statistics.median(busy) / 1e9)


def _waiting(name: str, duration: int) -> int:
    if BLOCKING.search(name):
        return duration
    return max(0, duration - LONGEST_LAUNCH) if LAUNCHING.search(name) else 0
