"""TensorFlow's record framing, of TFRecord and event files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trainmark.base.errors import UserError


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
