"""The profile of one rank as flat columns: what ran on the device, what the host did, where the steps end.

All times are whole nanoseconds on the profile's own clock, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

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


class Step(NamedTuple):
    """One step; both ends on the profile's clock. `number` is as the annotation counts."""

    number: int
    start: int
    end: int


class Operands(NamedTuple):
    """Inputs of an operator as the profiler recorded them: () is a scalar, None what is no tensor."""

    shapes: tuple[tuple[int, ...] | None, ...]
    types: tuple[str, ...]


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
    steps: tuple[Step, ...]
    rank: int = 0
    world_size: int = 1
    device_name: str | None = None
    lost: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


class Collector:
    """Takes spans one by one, in any order, and makes the columns; names are kept once."""

    def __init__(self) -> None:
        self._device: list[tuple[int, int, int, int, int, int, bool, int]] = []
        self._host: list[tuple[int, int, int, int, int, int, int]] = []
        self._operands: dict[int, Operands] = {}
        self._names: dict[str, int] = {}

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
    ) -> None:
        self._device.append((self._name(name), int(kind), start, end, stream, launch, in_graph, size))

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
    ) -> None:
        if operands is not None:
            self._operands[len(self._host)] = operands
        self._host.append((self._name(name), int(kind), start, end, thread, launch, sequence))

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def host_spans(self) -> HostSpans:
        """By start; of two that start together the longer first, as it encloses the other."""
        table = np.array(self._host, np.int64).reshape(-1, 7)
        order = np.lexsort((-table[:, 3], table[:, 2]))
        rows = {int(old): new for new, old in enumerate(order)} if self._operands else {}
        name, kind, start, end, thread, launch, sequence = table[order].T
        return HostSpans(
            tuple(self._names),
            name.astype(np.int32),
            kind.astype(np.int8),
            start,
            end,
            thread.astype(np.int32),
            launch,
            sequence,
            {rows[old]: operands for old, operands in self._operands.items()},
        )

    def device_spans(self, operators: Mapping[int, int] | None = None) -> DeviceSpans:
        """By start; `operators` gives the host row of each correlation id."""
        table = np.array(self._device, np.int64).reshape(-1, 8)
        table = table[np.lexsort((table[:, 3], table[:, 2]))]
        name, kind, start, end, stream, launch, in_graph, size = table.T
        known = operators or {}
        return DeviceSpans(
            tuple(self._names),
            name.astype(np.int32),
            kind.astype(np.int8),
            start,
            end,
            stream.astype(np.int32),
            launch,
            in_graph.astype(bool),
            size,
            np.array([known.get(int(each), -1) for each in launch], np.int32),
        )
