"""Records that are a map from names to values: TensorFlow's Example and OneFlow's OFRecord.

Both are protocol buffers of the same shape. The keys are written in sorted order, as their own libraries do
when asked for the same bytes each time.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from trainmark.datasets.records.protobuf import fields, head, message, read_varint, varint

MAP_ENTRY, KEY, VALUE = 1, 1, 2
BYTES_LIST = 1

Value = int | str


@dataclass(frozen=True)
class Encoded:
    """A serialised record, and where its picture lies in it."""

    before: bytes
    after: bytes


def encode(values: Mapping[str, Value], picture_key: str, picture_length: int, number_list: int) -> Encoded:
    """All but the picture itself; `number_list` is the field that this library has for integers."""
    before: list[bytes] = []
    after: list[bytes] = []
    out = before
    for key in sorted([*values, picture_key]):
        if key == picture_key:
            out.append(_picture_head(key, picture_length))
            out = after
        else:
            out.append(_entry(key, values[key], number_list))
    return Encoded(b"".join(before), b"".join(after))


# Most values come again and again: classes, widths, heights.
@functools.lru_cache(4096)
def _entry(key: str, value: Value, number_list: int) -> bytes:
    if isinstance(value, str):
        feature = message(BYTES_LIST, message(1, value.encode("utf-8", "surrogateescape")))
    else:
        feature = message(number_list, message(1, varint(value)))
    return message(MAP_ENTRY, message(KEY, key.encode()) + message(VALUE, feature))


@functools.lru_cache(16)
def _named(key: str) -> bytes:
    return message(KEY, key.encode())


def _picture_head(key: str, length: int) -> bytes:
    values = head(1, length)
    feature = head(BYTES_LIST, len(values) + length)
    value = head(VALUE, len(feature) + len(values) + length)
    named = _named(key)
    entry = head(MAP_ENTRY, len(named) + len(value) + len(feature) + len(values) + length)
    return b"".join((entry, named, value, feature, values))


@dataclass(frozen=True)
class Decoded:
    """Where the bytes of a text or picture lie, and the first of each list of integers."""

    places: dict[str, tuple[int, int]]
    numbers: dict[str, int]

    def text(self, data: memoryview, key: str) -> str:
        begin, end = self.places.get(key, (0, 0))
        return bytes(data[begin:end]).decode("utf-8", "surrogateescape")


def decode(data: memoryview, begin: int, end: int, number_list: int) -> Decoded:
    """ValueError where it is no such record; lists of floats are passed over."""
    places: dict[str, tuple[int, int]] = {}
    numbers: dict[str, int] = {}
    for field, _, start, stop in fields(data, begin, end):
        if field != MAP_ENTRY:
            continue
        parts = {number: (at, to) for number, _, at, to in fields(data, start, stop)}
        if KEY not in parts or VALUE not in parts:
            continue
        key = bytes(data[slice(*parts[KEY])]).decode("utf-8", "replace")
        for kind, _, at, to in fields(data, *parts[VALUE]):
            for _, value, first, last in fields(data, at, to):
                if kind == BYTES_LIST:
                    places.setdefault(key, (first, last))
                elif kind == number_list:
                    # Packed where it has a length, else a number by itself.
                    number = read_varint(data, first)[0] if last > first else value
                    numbers.setdefault(key, _signed(number))
    return Decoded(places, numbers)


def _signed(value: int) -> int:
    (number,) = struct.unpack("<q", struct.pack("<Q", value))
    return int(number)
