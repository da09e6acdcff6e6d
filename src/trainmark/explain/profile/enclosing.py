"""Which host row encloses which: the parent of every row on its thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile.model import DeviceSpans, HostKind, HostSpans

ROUNDING = 2_000  # nanoseconds by which a profiler's ends of a call and of its caller may differ

Found = TypeVar("Found")


def parents(host: HostSpans) -> npt.NDArray[np.int32]:
    """Return the row that encloses each row on its thread, -1 at the outermost.

    Rows are by start, the longer first. One that outlives the row it began in, by more than rounding, was not
    called by it: an annotation that a hook opens at the end of `Optimizer.step` lasts for the next step.
    """
    result = np.full(len(host), -1, np.int32)
    stacks: dict[int, list[tuple[int, int]]] = {}
    columns = zip(host.start.tolist(), host.end.tolist(), host.thread.tolist(), strict=True)
    for row, (start, end, thread) in enumerate(columns):
        # What ends before a row that began later encloses nothing more: the ends in a stack fall.
        stack = stacks.setdefault(thread, [])
        while stack and (stack[-1][0] <= start or stack[-1][0] + ROUNDING < end):
            stack.pop()
        if stack:
            result[row] = stack[-1][1]
        while stack and stack[-1][0] <= end:
            stack.pop()
        stack.append((end, row))
    return result


def from_outside(
    row: int, parent: npt.NDArray[np.int32], known: dict[int, Found], inside: Callable[[int, Found], Found]
) -> Found:
    """Return what `inside` makes of a row and of what it made of the row around it.

    `known` has what was made of each row, and under -1 what is outside of all: however deep rows lie in one
    another, each is looked at once.
    """
    chain = []
    while row not in known:
        chain.append(row)
        row = int(parent[row])
    found = known[row]
    for inner in reversed(chain):
        found = known[inner] = inside(inner, found)
    return found


def launching_rows(spans: DeviceSpans, host: HostSpans) -> npt.NDArray[np.int32]:
    """Return the host row behind each span: its operator, else its runtime call, else -1."""
    runtime = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    rows = spans.operator.astype(np.int32)
    if not len(runtime) or not len(rows):
        return rows
    runtime = runtime[np.argsort(host.launch[runtime], kind="stable")]
    launches = host.launch[runtime]
    place = np.minimum(np.searchsorted(launches, spans.launch), len(launches) - 1)
    called = (spans.launch >= 0) & (launches[place] == spans.launch)
    return np.where(rows >= 0, rows, np.where(called, runtime[place], -1)).astype(np.int32)
