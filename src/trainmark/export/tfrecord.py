"""TensorFlow's record framing: length, checksum of it, bytes, checksum of them.

The checksum is CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), masked as LevelDB masks it, so that
a checksum over data that holds checksums stays a good one.
"""

from __future__ import annotations

import struct


def _table() -> tuple[int, ...]:
    entries = []
    for entry in range(256):
        for _ in range(8):
            entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
        entries.append(entry)
    return tuple(entries)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """Rotated right by 15 bits, plus a constant."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, struct.pack("<I", masked(crc32c(length))), data, struct.pack("<I", masked(crc32c(data))))
    )
