"""Profiles of a few spans, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trainmark.explain.nesting import parents
from trainmark.explain.profile import (
    Collector,
    DeviceKind,
    DeviceSpans,
    HostKind,
    HostSpans,
    Operands,
    Profile,
    ProfiledStep,
    SpanSource,
)


class Span(NamedTuple):
    name: str
    start: int
    end: int
    stream: int = 0
    launch: int = -1
    in_graph: bool = False
    kind: DeviceKind = DeviceKind.KERNEL
    size: int = 0
    source: SpanSource | None = None


class Row(NamedTuple):
    """A host row; `launch` makes it a runtime call."""

    name: str
    start: int
    end: int
    kind: HostKind = HostKind.OPERATOR
    thread: int = 0
    launch: int = -1
    sequence: int = -1
    operands: Operands | None = None


def call(start: int, launch: int, thread: int = 0) -> Row:
    return Row("cudaLaunchKernel", start, start + 1, HostKind.RUNTIME, thread, launch)


def profile_of(
    spans: Iterable[Span], ends: Sequence[int], start: int = 0, rows: Iterable[Row] = (), lost: int = 0
) -> Profile:
    """A profile whose steps end at `ends`; spans belong to the innermost operator around their launch."""
    collector = Collector()
    for row in rows:
        collector.host(
            row.name, row.start, row.end, row.thread, row.kind, row.launch, row.sequence, row.operands
        )
    for span in spans:
        collector.device(
            *(span.name, span.start, span.end, span.stream, span.kind, span.launch, span.in_graph, span.size),
            source=span.source,
        )
    host = collector.host_spans()
    edges = [start, *ends]
    steps = tuple(ProfiledStep(number, *edges[number : number + 2]) for number in range(len(ends)))
    return Profile("cuda", _launched(collector, host), host, steps, lost=lost)


def _launched(collector: Collector, host: HostSpans) -> DeviceSpans:
    parent, operators = parents(host), {}
    for row in np.flatnonzero(host.launch >= 0).tolist():
        outer = int(parent[row])
        while outer >= 0 and host.kind[outer] != HostKind.OPERATOR:
            outer = int(parent[outer])
        operators[int(host.launch[row])] = outer
    return collector.device_spans(operators)
