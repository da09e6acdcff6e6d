"""The profile of one rank as flat columns: device spans, host spans, steps, and sets of intervals of time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]


class DeviceKind(IntEnum):
    KERNEL = 0
    COPY = 1
    MEMSET = 2


class HostKind(IntEnum):
    OPERATOR = 0  # aten::mm, an XLA thunk
    ANNOTATION = 1  # a named range: record_function, NVTX, "Optimizer.step#AdamW.step"
    RUNTIME = 2  # a call of the CUDA runtime or driver
    PYTHON = 3  # a frame of Python: "train.py(31): main", "nn.Module: Conv2d_3"


class ProfiledStep(NamedTuple):
    """One step; both ends on the profile's clock. `number` is as the annotation counts."""

    number: int
    start: int
    end: int


class Operands(NamedTuple):
    """Inputs of an operator as the profiler recorded them: () is a scalar, None what is no tensor.

    Each tensor of a list of tensors has its own entry, of type "TensorList". `values` are inputs that are no
    tensors, as text ("[2, 2]", "True"), "" where there is none: a convolution's stride, padding and groups.
    """

    shapes: tuple[tuple[int, ...] | None, ...]
    types: tuple[str, ...]
    values: tuple[str, ...] = ()


class SpanSource(NamedTuple):
    """What of a compiled program a span ran, where the profiler knows: "jit(step)/jvp(Dense_0)/dot_general".

    `flop` and `traffic` (bytes) are the instruction's; of several spans of one only the first has them.
    """

    operator: str
    flop: int | None = None
    traffic: int | None = None


@dataclass(frozen=True)
class DeviceSpans:
    """Kernels, copies and memsets of one device by start; `launch` is the correlation id, -1 without one.

    On a CPU these are the operators' own times (without what they called), and `stream` is the thread.
    """

    names: tuple[str, ...]
    name: Indices
    kind: npt.NDArray[np.int8]
    start: Nanoseconds
    end: Nanoseconds
    stream: Indices
    launch: npt.NDArray[np.int64]
    in_graph: npt.NDArray[np.bool_]  # replayed by a CUDA graph
    bytes: npt.NDArray[np.int64]  # of copies and memsets, else 0
    operator: Indices  # row of the host operator that launched it, -1 where unknown
    sources: Mapping[int, SpanSource] = field(default_factory=dict)  # by row, where known

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class HostSpans:
    """What host threads did, by start; a row encloses the rows that it called."""

    names: tuple[str, ...]
    name: Indices
    kind: npt.NDArray[np.int8]
    start: Nanoseconds
    end: Nanoseconds
    thread: Indices
    launch: npt.NDArray[np.int64]  # correlation id of a runtime call, else -1
    sequence: npt.NDArray[np.int64]  # autograd's number, the same forward and backward, else -1
    operands: Mapping[int, Operands] = field(default_factory=dict)  # by row, where recorded
    sources: Mapping[int, SpanSource] = field(default_factory=dict)  # by row, where known

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Profile:
    """One rank's profile. `device` is "cuda" or "cpu"; `lost` counts records that the profiler dropped.

    `steps` are without a gap: each starts where the one before ends.
    """

    device: str
    spans: DeviceSpans
    host: HostSpans
    steps: tuple[ProfiledStep, ...]
    rank: int = 0
    world_size: int = 1
    device_name: str | None = None
    lost: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


Entry = TypeVar("Entry")


class ByRow(Mapping[int, Entry]):
    """Entries of the rows that have one: one number a row, as few distinct entries occur many times."""

    def __init__(self, table: Sequence[Entry], number: Indices) -> None:
        """`number` is the place in `table` for every row, -1 for a row without an entry."""
        self.table, self.number = table, number

    def __getitem__(self, row: int) -> Entry:
        if not 0 <= row < len(self.number) or self.number[row] < 0:
            raise KeyError(row)
        return self.table[int(self.number[row])]

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.number >= 0).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.number >= 0))


class Collector:
    """Takes spans one by one, in any order, and makes the columns; names and operands are stored once."""

    def __init__(self) -> None:
        # Rows of 9 numbers one after the other: a tenth of what tuples would take.
        self._device = array("q")
        self._host = array("q")
        self._operands: dict[Operands, int] = {}
        self._names: dict[str, int] = {}
        self._sources: dict[SpanSource, int] = {}

    def device(
        self,
        name: str,
        start: int,
        end: int,
        stream: int = 0,
        kind: DeviceKind = DeviceKind.KERNEL,
        launch: int = -1,
        in_graph: bool = False,
        size: int = 0,
        source: SpanSource | None = None,
    ) -> None:
        name_number, source_number = self._name(name), self._source(source)
        self._device.extend((name_number, kind, start, end, stream, launch, in_graph, size, source_number))

    def host(
        self,
        name: str,
        start: int,
        end: int,
        thread: int = 0,
        kind: HostKind = HostKind.OPERATOR,
        launch: int = -1,
        sequence: int = -1,
        operands: Operands | None = None,
        source: SpanSource | None = None,
    ) -> None:
        number = -1 if operands is None else self._operands.setdefault(operands, len(self._operands))
        name_number, source_number = self._name(name), self._source(source)
        self._host.extend((name_number, kind, start, end, thread, launch, sequence, number, source_number))

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _source(self, source: SpanSource | None) -> int:
        return -1 if source is None else self._sources.setdefault(source, len(self._sources))

    def _by_row(self, number: npt.NDArray[np.int64]) -> Mapping[int, SpanSource]:
        return ByRow(tuple(self._sources), number.astype(np.int32)) if (number >= 0).any() else {}

    def host_spans(self) -> HostSpans:
        """By start; of two that start together the longer first, as it encloses the other."""
        table = np.asarray(self._host, np.int64).reshape(-1, 9)
        order = np.lexsort((-table[:, 3], table[:, 2]))
        return HostSpans(
            tuple(self._names),
            table[order, 0].astype(np.int32),
            table[order, 1].astype(np.int8),
            table[order, 2],
            table[order, 3],
            table[order, 4].astype(np.int32),
            table[order, 5],
            table[order, 6],
            ByRow(tuple(self._operands), table[order, 7].astype(np.int32)),
            self._by_row(table[order, 8]),
        )

    def device_spans(self, operators: Mapping[int, int] | None = None) -> DeviceSpans:
        """By start; `operators` gives the host row of each correlation id."""
        table = np.asarray(self._device, np.int64).reshape(-1, 9)
        order = np.lexsort((table[:, 3], table[:, 2]))
        launch = table[order, 5]
        rows = [operators.get(correlation, -1) for correlation in launch.tolist()] if operators else None
        return DeviceSpans(
            tuple(self._names),
            table[order, 0].astype(np.int32),
            table[order, 1].astype(np.int8),
            table[order, 2],
            table[order, 3],
            table[order, 4].astype(np.int32),
            launch,
            table[order, 6].astype(bool),
            table[order, 7],
            np.full(len(order), -1, np.int32) if rows is None else np.array(rows, np.int32),
            self._by_row(table[order, 8]),
        )


Intervals = tuple[Nanoseconds, Nanoseconds]
NO_INTERVALS: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: Nanoseconds, end: Nanoseconds) -> Intervals:
    """Return the disjoint intervals, by start, that cover the same time."""
    filled = end > start
    start, end = start[filled], end[filled]
    if not len(start):
        return NO_INTERVALS
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return start[first], reach[last]


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    start, end = np.maximum(intervals[0], low), np.minimum(intervals[1], high)
    filled = end > start
    return start[filled], end[filled]


def complement(intervals: Intervals, low: int, high: int) -> Intervals:
    """Return the parts of [low, high) that are in none of the disjoint intervals."""
    start, end = clip(intervals, low, high)
    gap_start, gap_end = np.concatenate(([low], end)), np.concatenate((start, [high]))
    filled = gap_end > gap_start
    return gap_start[filled], gap_end[filled]


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """Return the time of the first that is not in the second; both disjoint."""
    if not len(intervals[0]):
        return NO_INTERVALS
    low, high = int(intervals[0][0]), int(intervals[1][-1])
    return intersect(intervals, complement(others, low, high))


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """Return the time in both; both disjoint and by start."""
    pairs: list[tuple[int, int]] = []
    ends = second[1]
    for start, end in zip(first[0].tolist(), first[1].tolist(), strict=True):
        at = int(np.searchsorted(ends, start, side="right"))
        while at < len(ends) and second[0][at] < end:
            pairs.append((max(start, int(second[0][at])), min(end, int(ends[at]))))
            at += 1
    if not pairs:
        return NO_INTERVALS
    table = np.array(pairs, np.int64)
    return table[:, 0], table[:, 1]


def total_length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
