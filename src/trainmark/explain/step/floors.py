"""The least time of each class for its FLOP and bytes, by what the device was measured to do at best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmark.explain.classes import COMMUNICATION
from trainmark.explain.explanation import ClassTime, Peaks
from trainmark.explain.work.model import Work

ARITHMETIC, MEMORY = "arithmetic", "memory"


def with_floors(
    classes: Sequence[ClassTime], work: Mapping[str, Work], peaks: Peaks, steps: int
) -> tuple[ClassTime, ...]:
    """Return the classes with FLOP, bytes and floor of all steps; `work` is of one.

    A floor needs what is known of the whole class: FLOP with a peak rate, or bytes with a bandwidth. Of two
    the longer one binds; FLOP without a rate leave none, since bytes alone would be too little.
    Communication moves no memory by this count and has no floor here.
    """
    return tuple(_with_floor(time, work.get(time.name), peaks, steps) for time in classes)


def _with_floor(time: ClassTime, work: Work | None, peaks: Peaks, steps: int) -> ClassTime:
    if work is None:
        return time
    flop = None if work.flop is None else work.flop * steps
    moved = None if work.bytes is None else work.bytes * steps
    time = replace(time, flop=flop, bytes=moved)
    bounds = []
    if flop and not peaks.flops:
        return time
    if flop and peaks.flops:
        bounds.append((flop / peaks.flops, ARITHMETIC))
    if moved and peaks.bandwidth and time.name != COMMUNICATION:
        bounds.append((moved / peaks.bandwidth, MEMORY))
    if not bounds:
        return time
    seconds, bound = max(bounds)
    return replace(time, floor=math.ceil(seconds * 1e9), bound=bound)
