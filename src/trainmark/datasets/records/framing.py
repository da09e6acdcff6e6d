"""TensorFlow's record framing: length, checksum of it, bytes, checksum of them."""

from __future__ import annotations

import struct

from trainmark.errors import UserError

LENGTH, CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")


def framed(content: bytes) -> bytes:
    """Return the bytes of one record."""
    length = LENGTH.pack(len(content))
    return b"".join((length, CHECKSUM.pack(masked_crc(length)), content, CHECKSUM.pack(masked_crc(content))))


def masked_crc(data: bytes | memoryview) -> int:
    """CRC-32C, rotated right by 15 bits, plus a constant: as LevelDB masks it."""
    try:
        from crc32c import crc32c
    except ImportError as error:
        raise UserError("the checksums of TFRecord need crc32c; pip install crc32c.") from error
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
