"""The spans to draw: as the timeline of a page, and as a trace that ui.perfetto.dev opens."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.explain.explanation import Timeline, TimelineSpan
from trainmark.explain.profile import (
    DeviceKind,
    DeviceSpans,
    HostKind,
    HostSpans,
    Operands,
    Profile,
    SpanSource,
)
from trainmark.explain.trace_events import STEP_CATEGORY

MOST_TIMELINE_SPANS = 4000


def timeline(profile: Profile, classes: Sequence[str], most: int = MOST_TIMELINE_SPANS) -> Timeline:
    """Return at most `most` spans by start; the shortest are left out and counted."""
    if not profile.steps:
        return Timeline()
    begin, end = profile.steps[0].start, profile.steps[-1].end
    spans = profile.spans
    rows = np.flatnonzero((spans.start < end) & (spans.end > begin))
    lasting = (spans.end - spans.start)[rows]
    longest = np.sort(np.argsort(-lasting, kind="stable")[:most])
    lane = "thread" if profile.device == "cpu" else "stream"
    drawn = tuple(
        TimelineSpan(
            f"{lane} {int(spans.stream[row])}",
            spans.names[int(spans.name[row])],
            classes[row],
            max(int(spans.start[row]), begin) - begin,
            min(int(spans.end[row]), end) - begin,
        )
        for row in rows[longest].tolist()
    )
    steps = tuple((step.start - begin, step.end - begin) for step in profile.steps)
    return Timeline(steps, drawn, len(rows) - len(drawn))


# About 250 MB of text, which Perfetto still opens.
MOST_SPANS = 1_000_000
STEPS, DEVICE, HOST = 0, 1, 2
DEVICE_CATEGORIES = {
    DeviceKind.KERNEL: "kernel",
    DeviceKind.COPY: "gpu_memcpy",
    DeviceKind.MEMSET: "gpu_memset",
}
HOST_CATEGORIES = {
    HostKind.OPERATOR: "cpu_op",
    HostKind.ANNOTATION: "user_annotation",
    HostKind.RUNTIME: "cuda_runtime",
    HostKind.PYTHON: "python_function",
}
# Operators' own times are made again from the operators when such a trace is read.
SELF_TIME = "self_time"

Rows = npt.NDArray[np.intp]


def write(path: Path, profile: Profile, classes: Sequence[str] = (), most: int = MOST_SPANS) -> int:
    """Write the trace, packed where the name ends in .gz; return how many spans were left out, the shortest.

    `classes` has the kernel class of each row of `profile.spans`.
    """
    part = path.with_name(f"{path.name}.part")
    device = _longest(profile.spans, most)
    host = _longest(profile.host, most - len(device))
    try:
        with _open(part, packed=path.suffix == ".gz") as file:
            _write(file, profile, classes, device, host)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from None
    return len(profile.spans) - len(device) + len(profile.host) - len(host)


def _open(path: Path, packed: bool) -> TextIO:
    return gzip.open(path, "wt", 5, encoding="utf-8") if packed else path.open("w", encoding="utf-8")


def _write(file: TextIO, profile: Profile, classes: Sequence[str], device: Rows, host: Rows) -> None:
    starts = [spans.start[rows].min() for spans, rows in _parts(profile, device, host) if len(rows)]
    base = int(min([*starts, *(step.start for step in profile.steps)], default=0))
    head = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "distributedInfo": {"rank": profile.rank, "world_size": profile.world_size},
        "deviceProperties": [{"id": 0, "name": profile.device_name}] if profile.device_name else [],
        "lost_records": profile.lost,
    }
    file.write(json.dumps(head)[:-1] + ',\n"traceEvents": [\n')
    file.write(_label("process_name", STEPS, 0, "steps"))
    for step in profile.steps:
        arguments = {"number": step.number}
        file.write(
            ",\n"
            + _span(
                f'"step {step.number}"',
                STEP_CATEGORY,
                STEPS,
                0,
                step.start - base,
                step.end - base,
                arguments,
            )
        )
    for line in _device_lines(profile, classes, device, base):
        file.write(",\n" + line)
    for line in _host_lines(profile.host, host, base):
        file.write(",\n" + line)
    file.write("\n]}\n")


def _parts(profile: Profile, device: Rows, host: Rows) -> tuple[tuple[DeviceSpans | HostSpans, Rows], ...]:
    return (profile.spans, device), (profile.host, host)


def _device_lines(profile: Profile, classes: Sequence[str], rows: Rows, base: int) -> Iterator[str]:
    spans, on_gpu = profile.spans, profile.device != "cpu"
    title = (
        f"device {profile.device_name or ''}".strip() if on_gpu else "operators, without those they called"
    )
    yield _label("process_name", DEVICE, 0, title)
    lanes = _Lanes("stream" if on_gpu else "thread")
    names: dict[int, str] = {}
    for row in rows.tolist():
        start, end, stream = int(spans.start[row]), int(spans.end[row]), int(spans.stream[row])
        lane, label = lanes.lane(stream, start, end)
        if label:
            yield _label("thread_name", DEVICE, lane, label)
        arguments: dict[str, Any] = {"class": classes[row]} if classes else {}
        category = SELF_TIME
        if on_gpu:
            category = DEVICE_CATEGORIES[DeviceKind(spans.kind[row])]
            arguments.update(device=0, stream=stream)
            if spans.launch[row] >= 0:
                arguments["correlation"] = int(spans.launch[row])
            if spans.in_graph[row]:
                arguments["graph node id"] = 1
            if spans.bytes[row]:
                arguments["bytes"] = int(spans.bytes[row])
            arguments.update(_source(spans.sources.get(row)))
        yield _span(
            _quoted(names, spans.names, int(spans.name[row])),
            category,
            DEVICE,
            lane,
            start - base,
            end - base,
            arguments,
        )


def _host_lines(host: HostSpans, rows: Rows, base: int) -> Iterator[str]:
    yield _label("process_name", HOST, 0, "host")
    names: dict[int, str] = {}
    for row in rows.tolist():
        arguments: dict[str, Any] = {}
        if host.launch[row] >= 0:
            arguments["correlation"] = int(host.launch[row])
        if host.sequence[row] >= 0:
            arguments["Sequence number"] = int(host.sequence[row])
        if operands := host.operands.get(row):
            arguments.update(_operands(operands))
        arguments.update(_source(host.sources.get(row)))
        category = HOST_CATEGORIES[HostKind(host.kind[row])]
        start, end = int(host.start[row]) - base, int(host.end[row]) - base
        yield _span(
            _quoted(names, host.names, int(host.name[row])),
            category,
            HOST,
            int(host.thread[row]),
            start,
            end,
            arguments,
        )


class _Lanes:
    """Lanes of streams: viewers drop spans of one lane that overlap, so these get a second one."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lanes: dict[int, list[tuple[int, int]]] = {}  # of a stream: number and when it is free
        self._count = 0

    def lane(self, stream: int, start: int, end: int) -> tuple[int, str | None]:
        """Return the number of a free lane of the stream, and its label where it is new."""
        lanes = self._lanes.setdefault(stream, [])
        for place, (number, free) in enumerate(lanes):
            if free <= start:
                lanes[place] = number, end
                return number, None
        self._count += 1
        lanes.append((self._count, end))
        more = f" ({len(lanes)})" if len(lanes) > 1 else ""
        return self._count, f"{self._what} {stream}{more}"


def _longest(spans: DeviceSpans | HostSpans, most: int) -> Rows:
    """Return the rows of at most so many spans, in their order."""
    if len(spans) <= most:
        return np.arange(len(spans))
    return np.sort(np.argsort(spans.start - spans.end, kind="stable")[:most])


def _operands(operands: Operands) -> dict[str, Any]:
    written: dict[str, Any] = {"Input Dims": [list(shape or ()) for shape in operands.shapes]}
    if operands.types:
        written["Input type"] = list(operands.types)
    if operands.values:
        written["Concrete Inputs"] = list(operands.values)
    return written


def _source(source: SpanSource | None) -> dict[str, Any]:
    if source is None:
        return {}
    written = {"operator": source.operator, "flop": source.flop, "traffic": source.traffic}
    return {name: value for name, value in written.items() if value is not None}


def _quoted(known: dict[int, str], names: Sequence[str], index: int) -> str:
    if index not in known:
        known[index] = json.dumps(names[index])
    return known[index]


def _span(
    name: str, category: str, process: int, lane: int, start: int, end: int, arguments: dict[str, Any]
) -> str:
    what = f'"ph": "X", "cat": "{category}", "name": {name}, "pid": {process}, "tid": {lane}'
    times = f'"ts": {_microseconds(start)}, "dur": {_microseconds(end - start)}'
    return f'{{{what}, {times}, "args": {json.dumps(arguments)}}}'


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _label(what: str, process: int, lane: int, label: str) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": process, "tid": lane, "args": {"name": label}})
