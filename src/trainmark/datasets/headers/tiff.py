"""TIFF: directories of tags, each directory a frame (TIFF 6.0); of BigTIFF only the name."""

from __future__ import annotations

from typing import Literal

from trainmark.datasets.headers.header import Header

STARTS = {b"II*\0": "little", b"MM\0*": "big", b"II+\0": "little", b"MM\0+": "big"}
WIDTH, HEIGHT, BITS, PHOTOMETRIC, OFFSETS, SAMPLES, COUNTS, TILES, TILE_COUNTS = (
    256, 257, 258, 262, 273, 277, 279, 324, 325,
)  # fmt: skip
WANTED = frozenset({WIDTH, HEIGHT, BITS, PHOTOMETRIC, OFFSETS, SAMPLES, COUNTS, TILES, TILE_COUNTS})
SEPARATED = 5
SIZES = {1: 1, 3: 2, 4: 4}
# No picture of a training set has more pages or strips; a crafted file must not keep us busy.
MOST_FRAMES, MOST_STRIPS = 64, 4096


class _File:
    def __init__(self, data: bytes, order: Literal["little", "big"]) -> None:
        self.data, self.order = data, order

    def number(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], self.order)

    def tags(self, at: int) -> dict[int, list[int]]:
        """Of the directory there, the tags that matter here."""
        tags: dict[int, list[int]] = {}
        for entry in range(at + 2, at + 2 + 12 * self.number(at, 2), 12):
            if entry + 12 > len(self.data):
                break
            tag, size = self.number(entry, 2), SIZES.get(self.number(entry + 2, 2), 0)
            count = min(self.number(entry + 4, 4), MOST_STRIPS)
            if size and tag in WANTED and tag not in tags:
                values = entry + 8 if size * count <= 4 else self.number(entry + 8, 4)
                tags[tag] = [self.number(values + size * i, size) for i in range(count)]
        return tags


def look(data: bytes) -> Header:
    order: Literal["little", "big"] = "little" if STARTS[data[:4]] == "little" else "big"
    file = _File(data, order)
    if file.number(2, 2) != 42:
        return Header("tiff")
    places: list[int] = []
    ends: list[int] = []
    at = file.number(4, 4)
    while 8 <= at < len(data) and at not in places and len(places) < MOST_FRAMES:
        places.append(at)
        behind = at + 2 + 12 * file.number(at, 2)
        ends += [behind + 4, *_ends(file.tags(at))]
        at = file.number(behind, 4)
    if not places:
        return Header("tiff")
    tags = file.tags(places[0])

    def first(tag: int, otherwise: int = 0) -> int:
        return (tags.get(tag) or [otherwise])[0]

    return Header(
        "tiff",
        first(WIDTH),
        first(HEIGHT),
        first(SAMPLES, 1),
        first(BITS, 1),
        len(places),
        whole=max(ends) <= len(data) and at == 0 and not {OFFSETS, TILES}.isdisjoint(tags),
        cmyk=first(PHOTOMETRIC) == SEPARATED,
    )


def _ends(tags: dict[int, list[int]]) -> list[int]:
    """Where each strip or tile ends."""
    return [
        begin + length
        for offsets, counts in ((OFFSETS, COUNTS), (TILES, TILE_COUNTS))
        for begin, length in zip(tags.get(offsets, []), tags.get(counts, []), strict=False)
    ]
