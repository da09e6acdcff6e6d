"""Protocol buffers' wire format, as much as is needed here: written and read without a schema."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


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
    return bytes((field << 3 | BYTES,)) + varint(len(content)) + content


def message_head(field: int, length: int) -> bytes:
    """What stands before the content of such a field."""
    return bytes((field << 3 | BYTES,)) + varint(length)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number and the place behind it; ValueError where the bytes end or it does not."""
    value = shift = 0
    while shift < 70 and at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise ValueError("a number without an end")


def fields(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Field number, its number (0 where it has a length), and where its content begins and ends."""
    at = begin
    while at < end:
        key, at = read_varint(data, at)
        kind, value, start = key & 7, 0, at
        if kind == VARINT:
            value, at = read_varint(data, at)
        elif kind == BYTES:
            length, start = read_varint(data, at)
            at = start + length
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError("a field of no known kind")
        if at > end:
            raise ValueError("a field that goes beyond its message")
        yield key >> 3, value, start, at
