"""Which operator a host call was made in, and what an operator did itself: sweeps over nested host spans."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from trainmark.explain.profile.model import DeviceKind, DeviceSpans, HostKind, HostSpans, Indices

# Rows that become Python numbers at a time: all of them would take ten times the columns' memory.
BLOCK = 1 << 16


def operators_of(spans: DeviceSpans, host: HostSpans) -> Indices:
    """Return the host row of the innermost operator that each device span was launched in, -1 without one."""
    call, operator = _operators_of_calls(host)
    launch = host.launch[call]
    order = np.argsort(launch, kind="stable")
    launch, operator = launch[order], operator[order]
    rows = np.full(len(spans), -1, np.int32)
    if len(launch):
        at = np.searchsorted(launch, spans.launch).clip(max=len(launch) - 1)
        known = (launch[at] == spans.launch) & (spans.launch >= 0)
        rows[known] = operator[at[known]]
    return rows


def self_times(host: HostSpans) -> DeviceSpans:
    """Return what each operator did itself, without the operators it called, as spans; a thread is a stream.

    An operator that called others has a span for each piece between them. The pieces of a thread do not
    overlap and add up to the time in which it was in any operator.
    """
    pieces = array("q")
    stacks: dict[int, list[list[int]]] = {}
    for row, start, end, thread in _rows(host, np.flatnonzero(host.kind == HostKind.OPERATOR)):
        stack = stacks.setdefault(thread, [])
        _leave(stack, start, pieces)
        if stack:
            parent = stack[-1]
            pieces.extend((parent[0], parent[2], start))
            end = min(end, parent[1])
        stack.append([row, end, start])
    for stack in stacks.values():
        _leave(stack, None, pieces)
    table = np.array(pieces, np.int64).reshape(-1, 3)
    table = table[table[:, 2] > table[:, 1]]
    table = table[np.lexsort((table[:, 2], table[:, 1]))]
    rows, count = table[:, 0], len(table)
    return DeviceSpans(
        host.names,
        host.name[rows],
        np.full(count, DeviceKind.KERNEL, np.int8),
        table[:, 1].copy(),
        table[:, 2].copy(),
        host.thread[rows],
        np.full(count, -1, np.int64),
        np.zeros(count, bool),
        np.zeros(count, np.int64),
        rows.astype(np.int32),
    )


def _leave(stack: list[list[int]], now: int | None, pieces: array[int]) -> None:
    """End the operators that ended by `now`: the rest of each is its own, and its caller goes on."""
    while stack and (now is None or stack[-1][1] <= now):
        row, end, since = stack.pop()
        pieces.extend((row, since, end))
        if stack:
            stack[-1][2] = end


def _operators_of_calls(host: HostSpans) -> tuple[Indices, Indices]:
    """Return the rows of the runtime calls with a correlation id, and the operator around each or -1."""
    is_operator = host.kind == HostKind.OPERATOR
    is_call = (host.kind == HostKind.RUNTIME) & (host.launch >= 0)
    calls, operators = array("i"), array("i")
    stacks: dict[int, list[tuple[int, int]]] = {}
    for row, start, end, thread in _rows(host, np.flatnonzero(is_operator | is_call)):
        stack = stacks.setdefault(thread, [])
        while stack and stack[-1][1] <= start:
            stack.pop()
        if is_operator[row]:
            stack.append((row, end))
        else:
            calls.append(row)
            operators.append(stack[-1][0] if stack else -1)
    return np.array(calls, np.int32), np.array(operators, np.int32)


def _rows(
    host: HostSpans, rows: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Iterator[tuple[int, int, int, int]]:
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        yield from zip(
            block.tolist(),
            host.start[block].tolist(),
            host.end[block].tolist(),
            host.thread[block].tolist(),
            strict=True,
        )
