"""RecordIO as MXNet's im2rec packs it: magic number, length, label, picture; `.idx` and `.lst` beside it.

A magic number that lies within the data at a place divisible by four is left out there, and the record goes
on in a second piece. By chance alone, ImageNet would have about ten such pictures. Each is kept once more,
whole, in a second file beside the shard, where the index points to: so every picture is still one read away.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmark.base.wire import DamageError
from trainmark.data.files import mapped_file
from trainmark.data.records import (
    ImageRecord,
    RecordOffset,
    ScannedRecord,
    Sharded,
    ShardFile,
    ShardPlan,
)

MAGIC = struct.pack("<I", 0xCED7230A)
HEAD = struct.Struct("<4sI")
PICTURE = struct.Struct("<IfQQ")
WHOLE, FIRST, MIDDLE, LAST = range(4)
LENGTH_BITS = 29


class Rec(Sharded):
    name = "rec"
    train_shards, val_shards = 1, 1
    patterns = ("*.rec",)
    forbidden = "\n\r\t"  # a line of a .lst has its fields between tabs
    largest = (1 << LENGTH_BITS) - 1 - PICTURE.size

    def shard_name(self, split: str, number: int, total: int) -> str:
        return f"{split}.rec" if total == 1 else f"{split}-{number:05d}-of-{total:05d}.rec"

    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        for record in records:
            content = PICTURE.pack(0, record.label, record.number, 0) + record.data
            if not (cuts := _magics(content)):
                framed = b"".join((HEAD.pack(MAGIC, len(content)), content, _padding(len(content))))
                yield file.add(framed, HEAD.size + PICTURE.size, len(record.data))
            else:
                yield file.add_in_pieces(_in_pieces(content, cuts), record.data)

    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        with mapped_file(path) as data, _Names(path) as names:
            at = 0
            while at < len(data):
                pieces = list(_pieces(data, at))
                (start, stop), (_, last) = pieces[0], pieces[-1]
                end = last + -last % 4
                if end > len(data) or data[last:end].tobytes().strip(b"\0"):
                    raise DamageError(at, "the file ends within a record, or something lies between two")
                if stop - start < PICTURE.size:
                    raise DamageError(at, "a record too short for a picture")
                flag, label, number, _ = PICTURE.unpack_from(data, start)
                skip = PICTURE.size + 4 * flag
                length = sum(to - begin for begin, to in pieces) + len(MAGIC) * (len(pieces) - 1)
                if length < skip:
                    raise DamageError(at, "a record too short for its labels")
                if flag and stop - start >= skip:  # of several labels the first counts
                    (label,) = struct.unpack_from("<f", data, start + PICTURE.size)
                offset = start + skip if len(pieces) == 1 else -1
                yield ScannedRecord(at, end - at, offset, length - skip, _whole(label), names.of(number))
                at = end

    def gather(self, path: Path, begin: int) -> bytes:
        with mapped_file(path) as data:
            content = MAGIC.join(bytes(data[start:stop]) for start, stop in _pieces(data, begin))
        (flag,) = struct.unpack_from("<I", content)
        return content[PICTURE.size + 4 * flag :]

    def side_names(self, shard_name: str) -> tuple[str, ...]:
        stem = shard_name.removesuffix(".rec")
        return f"{stem}.idx", f"{stem}.lst"

    def side_lines(self, record: ImageRecord, place: RecordOffset) -> tuple[str, ...]:
        number, label = record.number, record.label
        return f"{number}\t{place.begin}\n", f"{number}\t{label:f}\t{record.name}\n"


class _Names:
    """The names in the .lst beside a shard, as long as it has the records in the shard's order."""

    def __init__(self, path: Path) -> None:
        listed = path.with_suffix(".lst")
        self._file = listed.open(encoding="utf-8", errors="surrogateescape") if listed.is_file() else None

    def of(self, number: int) -> str:
        line = self._file.readline().rstrip("\n").split("\t") if self._file else []
        return line[-1] if len(line) > 2 and line[0] == str(number) else ""

    def __enter__(self) -> _Names:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()


def _whole(label: float) -> int:
    return int(label) if math.isfinite(label) and label == int(label) else -1


def _magics(content: bytes) -> list[int]:
    offsets, at = [], content.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            offsets.append(at)
        at = content.find(MAGIC, at + (4 if at % 4 == 0 else 1))
    return offsets


def _in_pieces(content: bytes, cuts: list[int]) -> bytes:
    out, begin = [], 0
    for cut in cuts:
        kind = MIDDLE if begin else FIRST
        out += [HEAD.pack(MAGIC, kind << LENGTH_BITS | cut - begin), content[begin:cut]]
        begin = cut + 4
    rest = content[begin:]
    out += [HEAD.pack(MAGIC, LAST << LENGTH_BITS | len(rest)), rest, _padding(len(rest))]
    return b"".join(out)


def _pieces(data: memoryview, at: int) -> Iterator[tuple[int, int]]:
    """Where the content of each piece of the record at this place lies."""
    begin, kind = at, None
    while kind not in (WHOLE, LAST):
        if at + HEAD.size > len(data):
            raise DamageError(begin, "the file ends within a record's head")
        magic, word = HEAD.unpack_from(data, at)
        expected = (WHOLE, FIRST) if kind is None else (MIDDLE, LAST)
        kind, length = word >> LENGTH_BITS, word & (1 << LENGTH_BITS) - 1
        if magic != MAGIC or kind not in expected:
            raise DamageError(at, "no record begins")
        start = at + HEAD.size
        if start + length > len(data):
            raise DamageError(begin, "the file ends within a record")
        yield start, start + length
        at = start + length + -length % 4


def _padding(length: int) -> bytes:
    return b"\0" * (-length % 4)


FORMAT = Rec()
