"""Serialized XSpaces, as XLA writes them: fields by number, in protobuf's wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Value = int | str | bytes
Stats = Mapping[str, Value]
EventRow = tuple[str, int, int, Stats]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    groups = bytearray()
    while True:
        value, group = value >> 7, value & 0x7F
        groups.append(group | (0x80 if value else 0))
        if not value:
            return bytes(groups)


def field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


class Plane:
    """Collects lines of events; names and stats get their numbers as they come."""

    def __init__(self, name: str, stats: Stats | None = None) -> None:
        self._events: dict[str, int] = {}
        self._event_stats: dict[str, Stats] = {}
        self._stats: dict[str, int] = {}
        self._parts = [field(2, name)]
        self._parts.extend(field(6, self._stat(key, value)) for key, value in (stats or {}).items())

    def line(
        self, number: int, name: str, events: Iterable[tuple[str, int, int, Stats]], start: int = 0
    ) -> None:
        """Add events of (name, start ns, end ns, stats)."""
        parts = [message((1, number), (2, name), (3, start))]
        for event, begin, end, stats in events:
            body = message((1, self._events.setdefault(event, len(self._events) + 1)))
            body += message((2, (begin - start) * 1000), (3, (end - begin) * 1000))
            body += b"".join(field(4, self._stat(key, value)) for key, value in stats.items())
            parts.append(field(4, body))
        self._parts.append(field(3, b"".join(parts)))

    def metadata(self, name: str, stats: Stats) -> None:
        """Add the metadata of an event that need not occur, as those of programs do not."""
        self._events.setdefault(name, len(self._events) + 1)
        self._event_stats[name] = stats

    def _stat(self, key: str, value: Value) -> bytes:
        number = self._stats.setdefault(key, len(self._stats) + 1)
        if isinstance(value, int):
            return message((1, number), (4, value))
        if key == "hlo_op":  # a reference, as XLA stores strings that repeat
            return message((1, number), (7, self._stats.setdefault(value, len(self._stats) + 1)))
        return message((1, number), (6 if isinstance(value, bytes) else 5, value))

    def bytes(self) -> bytes:
        parts = list(self._parts)
        for name, number in self._events.items():
            stats = b"".join(field(5, self._stat(*pair)) for pair in self._event_stats.get(name, {}).items())
            parts.append(field(4, message((1, number), (2, message((1, number), (2, name)) + stats))))
        for name, number in self._stats.items():
            parts.append(field(5, message((1, number), (2, message((1, number), (2, name))))))
        return b"".join(parts)


def space(*planes: Plane, warnings: Iterable[str] = ()) -> bytes:
    return message(*((1, plane.bytes()) for plane in planes), *((3, warning) for warning in warnings))


# Of HLO: instructions with what the cost of a matrix product or a convolution follows from.

F32 = 11


def shape(*sizes: int) -> bytes:
    return message((2, F32), (3, b"".join(map(varint, sizes))))


def instruction(
    number: int,
    name: str,
    opcode: str,
    sizes: tuple[int, ...],
    operands: tuple[int, ...] = (),
    source: str = "",
    called: tuple[int, ...] = (),
    more: bytes = b"",
) -> bytes:
    body = message((1, name), (2, opcode), (3, shape(*sizes)), (7, message((2, source))), (35, number))
    body += field(36, b"".join(map(varint, operands))) + field(38, b"".join(map(varint, called)))
    return body + more


def program(computations: Mapping[int, Iterable[bytes]]) -> bytes:
    """A serialized HloProto of computations by number."""
    parts = [
        field(3, b"".join(field(2, one) for one in instructions) + field(5, number))
        for number, instructions in computations.items()
    ]
    return field(1, b"".join(parts))
