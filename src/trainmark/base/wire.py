"""Protocol buffers' wire format without a schema, and TensorFlow's record framing."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trainmark.base.errors import UserError

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


class DamageError(ValueError):
    """A shard is not what its format says; the message names the place, not the file."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"{what} at byte {position:,}")
        self.position = position


LENGTH, CHECKSUM, HEAD = struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<QI")


def framed(content: bytes) -> bytes:
    """Return the bytes of one record."""
    length = LENGTH.pack(len(content))
    return b"".join((length, CHECKSUM.pack(masked_crc(length)), content, CHECKSUM.pack(masked_crc(content))))


def frames(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield where each record begins, and where its content begins and ends; DamageError where it is none."""
    at = 0
    while at < len(data):
        if at + HEAD.size > len(data):
            raise DamageError(at, "the file ends within a record's head")
        length, crc = HEAD.unpack_from(data, at)
        if crc != masked_crc(data[at : at + LENGTH.size]):
            raise DamageError(at, "the checksum of a record's length does not fit")
        begin, end = at + HEAD.size, at + HEAD.size + length
        if end + CHECKSUM.size > len(data):
            raise DamageError(at, "the file ends within a record")
        if CHECKSUM.unpack_from(data, end)[0] != masked_crc(data[begin:end]):
            raise DamageError(at, "the checksum of a record does not fit")
        yield at, begin, end
        at = end + CHECKSUM.size


def masked_crc(data: bytes | memoryview) -> int:
    """CRC-32C, rotated right by 15 bits, plus a constant: as LevelDB masks it."""
    try:
        from crc32c import crc32c
    except ImportError as error:
        raise UserError("the checksums of TFRecord need crc32c; pip install crc32c.") from error
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
