"""The events of a trace, with their operands and collectives: each becomes a row, or is none of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from reprlib import repr as short
from typing import Any

import numpy as np

from trainmark.explain.profile import Collector, DeviceKind, HostKind, HostSpans, Operands, SpanSource

# Inputs that are no tensors.
NO_TENSOR = frozenset(
    ("", "Scalar", "ScalarList", "GenericList", "String", "Bool", "Int", "Double", "Device")
)
MOST_REMEMBERED = 100_000
# Longer values are lists of numbers of all tensors, which nothing is computed from.
MOST_TEXT = 60


class OperandsReader:
    """Makes the same Operands of the same inputs only once: a step repeats those of the step before."""

    def __init__(self) -> None:
        self._remembered: dict[Any, Operands] = {}

    def read(self, arguments: dict[str, Any]) -> tuple[Operands | None, int]:
        """Return the operands, and their size where they are new; None where they have an unexpected form."""
        shapes, types = arguments["Input Dims"], arguments.get("Input type", ())
        values = arguments.get("Concrete Inputs", ())
        try:
            content: Any = tuple(map(tuple, shapes)), tuple(types), tuple(values)
            operands = self._remembered.get(content)
        except TypeError:  # lists of tensors have lists of lists
            content, operands = None, None
        if operands is not None:
            return operands, 0
        operands = _operands(shapes, types, values)
        if operands is not None and content is not None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[content] = operands
        size = 0 if operands is None else 10 + sum(1 + len(shape or ()) for shape in operands.shapes)
        return operands, size


def _operands(shapes: Any, types: Any, values: Any) -> Operands | None:
    if type(shapes) is not list:
        return None
    types = types if type(types) is list else ()
    values = values if type(values) is list else ()
    rows: list[tuple[tuple[int, ...] | None, str, str]] = []
    for number, shape in enumerate(shapes):
        name = types[number] if number < len(types) and type(types[number]) is str else ""
        value = _value(values[number]) if number < len(values) else ""
        if type(shape) is not list:
            return None
        if shape and all(type(inner) is list for inner in shape):
            tensors = [_shape(inner) for inner in shape]
            if None in tensors:
                return None
            rows += [(tensor, name, value) for tensor in tensors]
        elif not shape and name in NO_TENSOR and types:
            rows.append((None, name, value))
        else:
            sizes = _shape(shape)
            if sizes is None:
                return None
            rows.append((sizes, name, value))
    columns = tuple(zip(*rows, strict=True)) or ((), (), ())
    return Operands(columns[0], columns[1] if types else (), columns[2] if any(columns[2]) else ())


def _shape(shape: list[Any]) -> tuple[int, ...] | None:
    return tuple(shape) if all(type(size) is int and 0 <= size < 1 << 62 for size in shape) else None


def _value(value: Any) -> str:
    """Return lists, flags and whole numbers; a fraction is a rate or an epsilon, another in every step."""
    return value if type(value) is str and len(value) <= MOST_TEXT and "." not in value else ""


MESSAGE = "In msg nelems"
# Rows of the threads in which a CPU backend carries a collective out; nothing else records it.
HOST_ROW = re.compile(r"(gloo|mpi|ucc):\w+")


def collective_operands(arguments: Mapping[str, Any]) -> Operands | None:
    """Return the elements taken and given as two shapes, with their type; values: collective, group size.

    None where the row is no transfer (a group that is made, a barrier) or has no numbers.
    """
    counts = arguments.get(MESSAGE), arguments.get("Out msg nelems")
    taken, given = (count if type(count) is int and 0 < count < 1 << 62 else 0 for count in counts)
    if not taken and not given:
        return None
    dtype, name, size = (arguments.get(key) for key in ("dtype", "Collective name", "Group size"))
    element = dtype if type(dtype) is str else ""
    ranks = str(size) if type(size) is int and size > 0 else ""
    return Operands(((taken,), (given,)), (element, element), (name if type(name) is str else "", ranks))


def collective_rows(host: HostSpans) -> list[int]:
    """Return the rows in which a thread of a CPU backend carries out a collective."""
    names = [index for index, name in enumerate(host.names) if HOST_ROW.fullmatch(name)]
    rows: list[int] = np.flatnonzero(np.isin(host.name, names) & (host.kind == HostKind.ANNOTATION)).tolist()
    return rows


# Kineto's categories; the capitalised ones are from before 2022.
DEVICE = {
    "kernel": DeviceKind.KERNEL,
    "gpu_memcpy": DeviceKind.COPY,
    "gpu_memset": DeviceKind.MEMSET,
    "Kernel": DeviceKind.KERNEL,
    "Memcpy": DeviceKind.COPY,
    "Memset": DeviceKind.MEMSET,
}
HOST = {
    "cpu_op": HostKind.OPERATOR,
    "user_annotation": HostKind.ANNOTATION,
    "cuda_runtime": HostKind.RUNTIME,
    "cuda_driver": HostKind.RUNTIME,
    "hip_runtime": HostKind.RUNTIME,
    "xpu_runtime": HostKind.RUNTIME,
    "python_function": HostKind.PYTHON,
    "Operator": HostKind.OPERATOR,
    "Runtime": HostKind.RUNTIME,
}
OVERHEAD = "overhead"
# Steps that were made out before, in a trace that `perfetto.py` wrote.
STEP_CATEGORY = "trainmark_step"
CATEGORIES = frozenset((*DEVICE, *HOST, OVERHEAD, STEP_CATEGORY))

# Microseconds: with the base of a trace, within what a 64-bit count of nanoseconds can hold.
LATEST = 4_000_000_000_000_000
SMALLEST, LARGEST = -(1 << 31), (1 << 31) - 1
SMALLEST_NUMBER, LARGEST_NUMBER = -(1 << 62), 1 << 62
MOST_DEVICES = 1024
MOST_STEPS = 1_000_000
# Characters of distinct names and numbers of distinct shapes: a trace of 1 GB has about a million.
MOST_STORED = 100_000_000
# A kernel's name with its template arguments has some thousand characters at most, and each of the patterns
# that tell its class passes over all of it.
LONGEST_NAME = 4096
SOURCE_SIZE = 100  # of a source without its name


class EventError(ValueError):
    """An event with a value that cannot be; the message continues "event 5 …"."""


class TooLargeError(ValueError):
    """More than is read; the message says of what."""


class EventReader:
    """Collects the spans of all devices and of the host."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self.host = Collector()
        self.devices: dict[int, Collector] = {}
        self.steps: list[tuple[int, int, int]] = []
        self._limit = limit
        self._spans: dict[int, int] = {}
        self._host_spans = 0
        self._stored = 0
        self._names: dict[str, str] = {}
        self._sources: dict[tuple[str, int, int], SpanSource] = {}
        self._operands = OperandsReader()
        self._threads: dict[tuple[Any, Any], int] = {}
        self._thread_numbers: set[int] = set()
        self._streams: dict[int, int] = {}
        self._overhead = [0, 0]

    def read(self, events: Iterable[Any]) -> None:
        categories = CATEGORIES
        for event in events:
            self.count += 1
            if type(event) is not dict:
                raise EventError(f"is no object but {_shown(event)}")
            category = event.get("cat")
            # Half of all events are flows, instants and labels.
            if type(category) is str and category in categories and event.get("ph") == "X":
                self._span(category, event)

    def device_counts(self) -> dict[int, int]:
        return self._spans

    def busiest_device(self) -> int:
        """Return the device with the most records, of equal ones the first by number."""
        return min(self._spans, key=lambda device: (-self._spans[device], device))

    def facts(self) -> dict[str, int]:
        """Return what the profiler says of its own cost."""
        records, nanoseconds = self._overhead
        return {"overhead_records": records, "overhead_nanoseconds": nanoseconds} if records else {}

    def _span(self, category: str, event: dict[str, Any]) -> None:
        start = _nanoseconds(event, "ts")
        end = start + _nanoseconds(event, "dur")
        arguments = event.get("args", {})
        if type(arguments) is not dict:
            raise EventError(f"has args that are no object but {_shown(arguments)}")
        kind = HOST.get(category)
        if kind is not None:
            self._host(kind, event, arguments, start, end)
        elif category in DEVICE:
            self._device(DEVICE[category], event, arguments, start, end)
        elif category == OVERHEAD:
            self._overhead[0] += 1
            self._overhead[1] += end - start
        elif len(self.steps) < MOST_STEPS:
            self.steps.append((start, end, _number(arguments, "number", 0)))

    def _host(
        self, kind: HostKind, event: dict[str, Any], arguments: dict[str, Any], start: int, end: int
    ) -> None:
        launch = sequence = -1
        operands = None
        if kind is HostKind.OPERATOR:
            sequence = _number(arguments, "Sequence number", -1)
            if MESSAGE in arguments:
                operands = collective_operands(arguments)
            elif "Input Dims" in arguments:
                operands, size = self._operands.read(arguments)
                self._store(size)
        elif kind is HostKind.ANNOTATION and "Input Dims" in arguments:
            # gloo:all_reduce and its like, which run in threads of their own.
            operands, size = self._operands.read(arguments)
            self._store(size)
        elif kind is HostKind.RUNTIME:
            # CUPTI counts from 1; 0 is "none".
            launch = _number(arguments, "correlation", -1) or -1
        self._host_spans += 1
        if self._host_spans > self._limit:
            raise TooLargeError(f"more than {self._limit:,} spans")
        thread = self._thread(event.get("pid"), event.get("tid"))
        source = self._source(arguments) if kind is HostKind.OPERATOR else None
        self.host.host(self._name(event), start, end, thread, kind, launch, sequence, operands, source)

    def _device(
        self, kind: DeviceKind, event: dict[str, Any], arguments: dict[str, Any], start: int, end: int
    ) -> None:
        device = _number(arguments, "device", 0)
        collector = self.devices.get(device)
        if collector is None:
            if len(self.devices) >= MOST_DEVICES:
                raise TooLargeError(f"more than {MOST_DEVICES} devices")
            collector = self.devices[device] = Collector()
            self._spans[device] = 0
        self._spans[device] += 1
        if self._spans[device] > self._limit:
            raise TooLargeError(f"more than {self._limit:,} spans")
        stream = _number(arguments, "stream", 0)
        if not SMALLEST <= stream <= LARGEST:
            stream = self._streams.setdefault(stream, SMALLEST + len(self._streams))
        collector.device(
            self._name(event),
            start,
            end,
            stream,
            kind,
            _number(arguments, "correlation", -1) or -1,
            _number(arguments, "graph node id", 0) > 0 or _number(arguments, "graph id", 0) > 0,
            _number(arguments, "bytes", 0),
            self._source(arguments) if kind is DeviceKind.KERNEL else None,
        )

    def _name(self, event: dict[str, Any]) -> str:
        name = event.get("name")
        if type(name) is not str:
            raise EventError(f"has a name that is no text but {_shown(name)}")
        known = self._names.get(name)
        if known is None:
            # JSON can hold half a surrogate pair, which nothing could print.
            known = self._names[name] = name[:LONGEST_NAME].encode(errors="replace").decode()
            self._store(len(name))
        return known

    def _source(self, arguments: dict[str, Any]) -> SpanSource | None:
        """Return what of a compiled program an event ran: our traces of XLA have it, Kineto's do not."""
        operator = arguments.get("operator")
        if type(operator) is not str:
            return None
        flop, traffic = (_number(arguments, field, -1) for field in ("flop", "traffic"))
        key = operator, flop, traffic
        source = self._sources.get(key)
        if source is None:
            name = operator[:LONGEST_NAME].encode(errors="replace").decode()
            source = SpanSource(name, flop if flop >= 0 else None, traffic if traffic >= 0 else None)
            self._sources[key] = source
            self._store(len(operator) + SOURCE_SIZE)
        return source

    def _store(self, size: int) -> None:
        self._stored += size
        if self._stored > MOST_STORED:
            raise TooLargeError("too many different names and shapes")

    def _thread(self, process: Any, thread: Any) -> int:
        """Return the thread's own number, or a free one where it has none or another process has it too."""
        try:
            number = self._threads.get((process, thread))
        except TypeError:
            raise EventError(f"has {_shown(process)} and {_shown(thread)} as pid and tid") from None
        if number is None:
            number = thread if type(thread) is int and SMALLEST <= thread <= LARGEST else 0
            while number in self._thread_numbers:
                number = number + 1 if number < LARGEST else SMALLEST
            if len(self._threads) >= MOST_STEPS:
                raise TooLargeError(f"more than {MOST_STEPS:,} threads")
            self._threads[process, thread] = number
            self._thread_numbers.add(number)
        return number


def _nanoseconds(event: dict[str, Any], field: str) -> int:
    value: Any = event.get(field)
    kind = type(value)
    if kind is Decimal and 0 <= value < LATEST:
        nanoseconds: int = round(value * 1000)
        return nanoseconds
    if kind is int and 0 <= value < LATEST:
        return int(value) * 1000
    raise EventError(f"({short(event.get('name'))}) has {_shown(value)} as its {field}")


def _number(arguments: dict[str, Any], field: str, otherwise: int) -> int:
    if field not in arguments:
        return otherwise
    value = arguments[field]
    if type(value) is int and SMALLEST_NUMBER < value < LARGEST_NUMBER:
        return value
    raise EventError(f"has {_shown(value)} as its {field}")


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, Decimal) else "nothing" if value is None else short(value)
