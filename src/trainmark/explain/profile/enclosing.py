"""Which host row encloses which: the parent of every row on its thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile.model import DeviceSpans, HostKind, HostSpans

ROUNDING = 2_000  # nanoseconds by which a profiler's ends of a call and of its caller may differ


def parents(host: HostSpans) -> npt.NDArray[np.int32]:
    """Return the row that encloses each row on its thread, -1 at the outermost.

    Rows are by start, the longer first. One that outlives the row it began in, by more than rounding, was not
    called by it: an annotation that a hook opens at the end of `Optimizer.step` lasts for the next step.
    """
    result = np.full(len(host), -1, np.int32)
    stacks: dict[int, list[tuple[int, int]]] = {}
    columns = zip(host.start.tolist(), host.end.tolist(), host.thread.tolist(), strict=True)
    for row, (start, end, thread) in enumerate(columns):
        stack = stacks.setdefault(thread, [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        for outer_end, outer in reversed(stack):
            if end <= outer_end + ROUNDING:
                result[row] = outer
                break
        stack.append((end, row))
    return result


def ancestors(row: int, parent: npt.NDArray[np.int32]) -> Iterator[int]:
    """Yield the row itself and what encloses it, from inside out."""
    while row >= 0:
        yield row
        row = int(parent[row])


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
