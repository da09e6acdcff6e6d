"""Protocol buffers' wire format without a schema: the fields of a message, read and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SIZES = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are no message, or end too early."""


def varint(value: int) -> bytes:
    """A negative one takes ten bytes, as protocol buffers have it."""
    value &= (1 << 64) - 1
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(field: int, kind: int) -> bytes:
    """Number (below 16) and kind of a field, which stand before its content."""
    return bytes((field << 3 | kind,))


def message(field: int, content: bytes) -> bytes:
    """A field that has a length: a message, a text, bytes, or packed numbers."""
    return message_head(field, len(content)) + content


def message_head(field: int, length: int) -> bytes:
    """What stands before the content of such a field."""
    return tag(field, BYTES) + varint(length)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number and the place behind it; WireError where the bytes end or it does not."""
    value = shift = 0
    while shift < 70 and at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise WireError("a number without an end")


def placed_fields(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, Any, int, int]]:
    """Number and value of each field, and where its content begins and ends."""
    at = begin
    while at < end:
        key, at = read_varint(data, at)
        kind, start = key & 7, at
        value: int | memoryview
        if kind == VARINT:
            value, at = read_varint(data, at)
        elif kind == BYTES:
            length, start = read_varint(data, at)
            at = start + length
            value = data[start:at]
        elif kind in SIZES:
            at += SIZES[kind]
            value = int.from_bytes(data[start:at], "little")
        else:
            raise WireError("a field of no known kind")
        if at > end:
            raise WireError("a field that goes beyond its message")
        yield key >> 3, value, start, at


def fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a message: an int, or a view of what it holds."""
    for number, value, _start, _end in placed_fields(data, 0, len(data)):
        yield number, value


def grouped(data: memoryview) -> dict[int, list[Any]]:
    """Return the values of each field by its number; the last of one that is not repeated counts."""
    values: dict[int, list[Any]] = {}
    for number, value in fields(data):
        values.setdefault(number, []).append(value)
    return values


def signed(value: int) -> int:
    """Return an int64 of a varint, which has negative ones as their two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value
