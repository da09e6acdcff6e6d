"""JPEG: markers up to the first scan, then the end mark (ITU-T T.81, annex B)."""

from __future__ import annotations

import re

from trainmark.datasets.headers.header import Header, big

START = b"\xff\xd8\xff"
END = b"\xff\xd9"
SCAN = 0xDA
# Start of frame, every coding process; C4, C8 and CC lie between them and are something else.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# These stand alone: restart marks, the start and TEM have no length.
ALONE = frozenset([*range(0xD0, 0xD9), 0x01])
NOT_FILL = re.compile(rb"[^\xff]")


def look(data: bytes) -> Header:
    width = height = components = bits = 0
    at = 2
    while (next_marker := _marker(data, at)) is not None:
        marker, at = next_marker
        if marker in ALONE:
            continue
        length = big(data, at, 2)
        if marker in FRAMES:
            bits, height, width = (
                data[at + 2] if at + 2 < len(data) else 0,
                big(data, at + 3, 2),
                big(data, at + 5, 2),
            )
            components = data[at + 7] if at + 7 < len(data) else 0
        if marker == SCAN:
            # Within a scan FF is always followed by 00 or a restart mark: FF D9 is the end. A thumbnail's
            # own end mark lies before the scan.
            whole = data.rfind(END, at + length) >= 0
            return Header("jpeg", width, height, components, bits, 1, whole, cmyk=components == 4)
        if length < 2 or marker == END[1]:
            break
        at += length
    return Header("jpeg", width, height, components, bits, 1 if width else 0, cmyk=components == 4)


def _marker(data: bytes, at: int) -> tuple[int, int] | None:
    """The marker at this place and the place behind it; any number of FF may fill the space before."""
    if data[at : at + 1] != b"\xff":
        return None
    match = NOT_FILL.search(data, at)
    return None if match is None or match.group() == b"\x00" else (data[match.start()], match.end())
