"""GIF: blocks up to the trailer; each image descriptor is a frame (GIF89a)."""

from __future__ import annotations

from trainmark.datasets.headers.header import Header, little

STARTS = (b"GIF87a", b"GIF89a")
IMAGE, EXTENSION, TRAILER = 0x2C, 0x21, 0x3B
HAS_TABLE = 0x80


def look(data: bytes) -> Header:
    width, height = little(data, 6, 2), little(data, 8, 2)
    at = 13 + _table(little(data, 10, 1))
    frames, whole = 0, False
    while at < len(data):
        kind = data[at]
        if kind == TRAILER:
            whole = True
            break
        if kind == IMAGE:
            frames += 1
            at += 11 + _table(little(data, at + 9, 1))
        elif kind == EXTENSION:
            at += 2
        else:
            break
        at = _behind_blocks(data, at)
    return Header("gif", width, height, 3, 8, frames, whole)


def _table(flags: int) -> int:
    """Bytes of the colour table that these flags announce."""
    return 3 << ((flags & 7) + 1) if flags & HAS_TABLE else 0


def _behind_blocks(data: bytes, at: int) -> int:
    while at < len(data) and (size := data[at]):
        at += 1 + size
    return at + 1
