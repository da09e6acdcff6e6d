"""PNG and animated PNG: chunks of length, name, content and CRC (W3C PNG, third edition)."""

from __future__ import annotations

from trainmark.datasets.headers.header import Header, big

START = b"\x89PNG\r\n\x1a\n"
CHUNK_FRAME = 12
# By colour type: grey, RGB, palette, grey with alpha, RGB with alpha.
COMPONENTS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def look(data: bytes) -> Header:
    width, height = big(data, 16, 4), big(data, 20, 4)
    bits, colour = big(data, 24, 1), big(data, 25, 1)
    frames, whole, at = 1, False, len(START)
    while at + CHUNK_FRAME <= len(data):
        length, name = big(data, at, 4), data[at + 4 : at + 8]
        if name == b"acTL":
            frames = max(1, big(data, at + 8, 4))
        at += CHUNK_FRAME + length
        if name == b"IEND":
            whole = at <= len(data)
            break
    return Header("png", width, height, COMPONENTS.get(colour, 0), bits, frames, whole)
