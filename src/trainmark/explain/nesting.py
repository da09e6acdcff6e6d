"""How host rows lie in one another: callers, own times, the row behind a span, forward behind backward."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile import DeviceKind, DeviceSpans, HostKind, HostSpans, Indices

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


def runtime_rows(spans: DeviceSpans, host: HostSpans) -> npt.NDArray[np.int32]:
    """Return the row of the call that launched each span, the first of several, -1 where unknown."""
    calls = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    rows = np.full(len(spans), -1, np.int32)
    if len(calls):
        calls = calls[np.argsort(host.launch[calls], kind="stable")]
        at = np.searchsorted(host.launch[calls], spans.launch).clip(max=len(calls) - 1)
        known = (spans.launch >= 0) & (host.launch[calls[at]] == spans.launch)
        rows[known] = calls[at[known]]
    return rows


def launching_rows(spans: DeviceSpans, host: HostSpans) -> npt.NDArray[np.int32]:
    """Return the host row behind each span: its operator, else its runtime call, else -1."""
    return np.where(spans.operator >= 0, spans.operator, runtime_rows(spans, host)).astype(np.int32)


ENGINE = "autograd::engine::evaluate_function"


def forward_rows(host: HostSpans, parent: npt.NDArray[np.int32]) -> dict[int, int]:
    """Return the forward operator's row by the row of the backward function that autograd's engine called.

    Several forward rows carry one number: those that made no node pass it on to the next. The node's maker is
    the last of them.
    """
    numbered = np.flatnonzero((host.kind == HostKind.OPERATOR) & (host.sequence >= 0))
    engine_names = {index for index, name in enumerate(host.names) if name.startswith(ENGINE)}
    if not len(numbered) or not engine_names:
        return {}
    in_backward = backward_rows(host, parent, engine_names)
    makers: dict[int, int] = {}
    result: dict[int, int] = {}
    for row in numbered.tolist():
        number = int(host.sequence[row])
        if not in_backward[row]:
            makers[number] = _outermost(row, number, makers, host)
        elif int(host.name[row]) in engine_names and number in makers:
            result[row] = makers[number]
    return result


def _outermost(row: int, number: int, makers: dict[int, int], host: HostSpans) -> int:
    """Return the row itself, unless the number's last row encloses it: then that one made the node."""
    before = makers.get(number)
    if before is not None and host.thread[before] == host.thread[row] and host.end[before] >= host.end[row]:
        return before
    return row


def backward_rows(
    host: HostSpans, parent: npt.NDArray[np.int32], engine_names: set[int] | None = None
) -> npt.NDArray[np.bool_]:
    """Say of each row whether autograd's engine encloses it or is it. A parent comes before its children."""
    if engine_names is None:
        engine_names = {index for index, name in enumerate(host.names) if name.startswith(ENGINE)}
    result: npt.NDArray[np.bool_] = np.isin(host.name, list(engine_names)) & (host.kind == HostKind.OPERATOR)
    if not result.any():
        return result
    inside: list[bool] = result.tolist()
    for row, above in enumerate(parent.tolist()):
        if above >= 0 and inside[above]:
            inside[row] = True
    return np.array(inside, bool)
