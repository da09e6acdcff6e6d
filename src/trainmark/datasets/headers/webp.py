"""WebP: a RIFF file of lossy, lossless or extended chunks (RFC 9649)."""

from __future__ import annotations

from trainmark.datasets.headers.header import Header, little

RIFF_FRAME, CHUNK_FRAME = 12, 8
HAS_ALPHA = 0x10


def starts(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def look(data: bytes) -> Header:
    width = height = frames = 0
    components = 3
    end = 8 + little(data, 4, 4)
    at = RIFF_FRAME
    while at + CHUNK_FRAME <= len(data):
        name, length, inside = data[at : at + 4], little(data, at + 4, 4), at + CHUNK_FRAME
        if name == b"VP8X":
            components = 4 if little(data, inside, 1) & HAS_ALPHA else 3
            width, height = 1 + little(data, inside + 4, 3), 1 + little(data, inside + 7, 3)
        elif name == b"VP8 ":
            frames += 1
            if not width:
                width, height = little(data, inside + 6, 2) & 0x3FFF, little(data, inside + 8, 2) & 0x3FFF
        elif name == b"VP8L":
            frames += 1
            if not width:
                sizes = little(data, inside + 1, 4)
                width, height = 1 + (sizes & 0x3FFF), 1 + (sizes >> 14 & 0x3FFF)
                components = 4 if sizes >> 28 & 1 else 3
        elif name == b"ANMF":
            frames += 1
        at = inside + length + length % 2
    return Header("webp", width, height, components, 8, frames, frames > 0 and RIFF_FRAME < end <= len(data))
