"""As much of a Matlab file (version 5) as ImageNet's meta.mat needs: an array of structures."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Literal

HEADER = 128
MATRIX, COMPRESSED = 14, 15
STRUCT, CHAR = 2, 4
# Kinds of numbers, as `struct` names them; 16 to 18 are text in UTF-8, -16 and -32.
NUMBERS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32", 1: "latin-1", 2: "latin-1"}
# The file is 1 MB; one that unpacks to more than this is something else.
MOST = 1 << 28

Order = Literal["<", ">"]
Value = str | tuple[float, ...]


def structures(data: bytes) -> list[dict[str, Value]]:
    """The first array of structures in the file, an entry each; ValueError where there is none."""
    order: Order = "<" if data[126:128] == b"IM" else ">"
    for kind, content in _elements(data[HEADER:], order):
        if kind == MATRIX and (entries := _structures(content, order)) is not None:
            return entries
    raise ValueError("no array of structures in it")


def _structures(matrix: bytes, order: Order) -> list[dict[str, Value]] | None:
    parts = _elements(matrix, order)
    flags, dims, _name = (next(parts)[1] for _ in range(3))
    if struct.unpack(f"{order}I", flags[:4])[0] & 0xFF != STRUCT:
        return None
    count = math.prod(struct.unpack(f"{order}{len(dims) // 4}i", dims))
    width = struct.unpack(f"{order}i", next(parts)[1][:4])[0]
    text = next(parts)[1]
    fields = [text[at : at + width].split(b"\0")[0].decode() for at in range(0, len(text), max(1, width))]
    return [{field: _value(next(parts)[1], order) for field in fields} for _ in range(count)]


def _value(matrix: bytes, order: Order) -> Value:
    """Text, or numbers; what is neither (a structure in a structure) counts as none."""
    parts = _elements(matrix, order)
    if (first := next(parts, None)) is None:
        return ()
    what = struct.unpack(f"{order}I", first[1][:4])[0] & 0xFF
    next(parts), next(parts)
    if what == STRUCT or (content := next(parts, None)) is None:
        return ()
    kind, raw = content
    if what == CHAR:
        return (
            "".join(map(chr, _numbers(raw, "H", order))) if kind == 4 else raw.decode(TEXTS[kind], "replace")
        )
    return tuple(float(number) for number in _numbers(raw, NUMBERS.get(kind, ""), order))


def _numbers(raw: bytes, code: str, order: Order) -> tuple[int, ...]:
    return struct.unpack(f"{order}{len(raw) // struct.calcsize(code)}{code}", raw) if code else ()


def _elements(data: bytes, order: Order) -> Iterator[tuple[int, bytes]]:
    """Kind and content of one element after the other; those of up to four bytes have a shorter head."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack(f"{order}II", data[at : at + 8])
        if kind >> 16:
            yield kind & 0xFFFF, data[at + 4 : at + 4 + min(4, kind >> 16)]
            at += 8
            continue
        content = data[at + 8 : at + 8 + size]
        at += 8 + size
        if kind == COMPRESSED:
            yield from _elements(zlib.decompressobj().decompress(content, MOST), order)
        else:
            yield kind, content
            at += -size % 8
