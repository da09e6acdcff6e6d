"""BMP: a file header that tells the file's size, and a bitmap header of several ages."""

from __future__ import annotations

from trainmark.datasets.headers.header import Header, little

START = b"BM"
# OS/2's, Windows 3's and its four followers; anything else that begins with BM is a text.
HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
OLDEST = 12


def starts(data: bytes) -> bool:
    return data[:2] == START and little(data, 14, 4) in HEADERS


def look(data: bytes) -> Header:
    if little(data, 14, 4) == OLDEST:
        width, height, depth = little(data, 18, 2), little(data, 20, 2), little(data, 24, 2)
    else:
        width, height, depth = abs(_signed(data, 18)), abs(_signed(data, 22)), little(data, 28, 2)
    size = little(data, 2, 4)
    components = {24: 3, 32: 4, 16: 3}.get(depth, 1)
    return Header("bmp", width, height, components, min(8, depth), 1, 26 < size <= len(data))


def _signed(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little", signed=True)
