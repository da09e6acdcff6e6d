"""What the formats are made of: shards of records, TensorFlow's record framing, Examples and OFRecords."""

from __future__ import annotations

import functools
import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar, NamedTuple

from trainmark.base.wire import DamageError
from trainmark.inside.wire import message, message_head, placed_fields, read_varint, signed, varint

CHUNK = 1 << 20


class RecordOffset(NamedTuple):
    """A record in its shard: all of it, the picture in it, and zlib.crc32 of all of it.

    Where the shard cannot hold the picture in one piece, `whole` tells its place in the second file.
    """

    begin: int
    length: int
    offset: int
    size: int
    crc: int
    whole: RecordOffset | None = None


class ShardFile:
    """Appends, and sums up while it does; what is changed later is summed up by reading all again."""

    def __init__(self, file: BinaryIO, open_beside: Callable[[], ShardFile] | None = None) -> None:
        self._file, self._open_beside = file, open_beside
        self._beside: ShardFile | None = None
        self._sum = hashlib.sha256()
        self._rewritten = False
        self.position = 0

    def add(self, record: bytes, offset: int, size: int) -> RecordOffset:
        """Writes a record whose picture lies at `offset` in it."""
        begin = self.position
        self.write(record)
        return RecordOffset(begin, len(record), begin + offset, size, zlib.crc32(record))

    def add_in_pieces(self, record: bytes, picture: bytes) -> RecordOffset:
        """Writes a record that has its picture in pieces, and the picture into the second file."""
        if self._beside is None:
            assert self._open_beside is not None
            self._beside = self._open_beside()
        return self.add(record, 0, 0)._replace(whole=self._beside.add(picture, 0, len(picture)))

    @property
    def beside(self) -> ShardFile | None:
        """The second file, where one was needed."""
        return self._beside

    def write(self, content: bytes) -> None:
        self._file.write(content)
        if not self._rewritten:
            self._sum.update(content)
        self.position += len(content)

    def skip_to(self, position: int) -> None:
        """Zeros up to there, as a hole where the file system has holes."""
        if position > self.position:
            self._rewritten = True
            self._file.seek(position)
            self.position = position

    def rewrite(self, position: int, content: bytes) -> None:
        self._rewritten = True
        self._file.seek(position)
        self._file.write(content)
        self._file.seek(self.position)

    def finish(self) -> str:
        """The checksum, once nothing more is written."""
        self._file.truncate(self.position)
        self._file.flush()
        if self._rewritten:
            self._sum = hashlib.sha256()
            self._file.seek(0)
            while chunk := self._file.read(CHUNK):
                self._sum.update(chunk)
        return self._sum.hexdigest()


# ImageNet's pictures: a set of another size has shards in proportion.
IMAGENET_TRAIN, IMAGENET_VAL = 1_281_167, 50_000


class ImageRecord(NamedTuple):
    """One picture on its way into a shard; `number` counts within the split, `data` stays untouched."""

    name: str
    label: int
    number: int
    data: bytes
    kind: str
    width: int
    height: int
    channels: int


class ScannedRecord(NamedTuple):
    """One record found in a shard; a name that the format does not store is "", a label -1.

    The offset is -1 where the picture lies in pieces: `gather` then puts it together.
    """

    begin: int
    length: int
    offset: int
    size: int
    label: int
    name: str


@dataclass(frozen=True)
class ShardPlan:
    """One shard to be written: which of how many, how many records at most, and the largest of them."""

    split: str
    number: int
    total: int
    records: int
    largest: int


class ImageFormat(ABC):
    """A format is a file in `formats/` that has one of these as FORMAT, under the format's name."""

    name: ClassVar[str]
    #: What its readers cannot cope with, of what can be odd in a picture.
    unfit: ClassVar[frozenset[str]] = frozenset()
    #: What no name may contain: names are lines of text files.
    forbidden: ClassVar[str] = "\n\r"
    #: No picture may be larger.
    largest: ClassVar[int] = (1 << 32) - (1 << 20)


class Loose(ImageFormat):
    """Every picture is a file of its own, in a folder for each class."""

    #: A list of them with their labels in the set's folder, such as `train_list.txt`.
    list_ending: ClassVar[str] = ""


class Sharded(ImageFormat):
    """Many pictures share a file."""

    #: How many files ImageNet has in this format.
    train_shards: ClassVar[int]
    val_shards: ClassVar[int]
    #: What their names look like where somebody else made them.
    patterns: ClassVar[tuple[str, ...]]

    def shard_count(self, split: str, records: int) -> int:
        full, of = (self.val_shards, IMAGENET_VAL) if split == "val" else (self.train_shards, IMAGENET_TRAIN)
        return max(1, min(records, round(full * records / of)))

    @abstractmethod
    def shard_name(self, split: str, number: int, total: int) -> str: ...

    @abstractmethod
    def write(
        self, file: ShardFile, records: Iterable[ImageRecord], shard: ShardPlan
    ) -> Iterator[RecordOffset]:
        """Where each record went, as soon as it is written; what comes behind the last one, at the end."""

    @abstractmethod
    def scan(self, path: Path) -> Iterator[ScannedRecord]:
        """The records of a shard in its order; raises DamageError where it is not whole."""

    def gather(self, path: Path, begin: int) -> bytes:
        """The picture of a record that lies in pieces, in a format that has such records."""
        raise DamageError(begin, f"{self.name} has no pictures in pieces, and one")

    def side_names(self, shard_name: str) -> tuple[str, ...]:
        """Text files with a line a record that belong beside a shard."""
        return ()

    def side_lines(self, record: ImageRecord, place: RecordOffset) -> tuple[str, ...]:
        """A line for each of them."""
        return ()

    def finish(self, shard_name: str, part: Path) -> dict[str, Path]:
        """Other files that belong to the shard, which is whole at `part`: by name, made beside it."""
        return {}


MAP_ENTRY, KEY, VALUE = 1, 1, 2
BYTES_LIST = 1

Value = int | str


@dataclass(frozen=True)
class EncodedExample:
    """A serialised record, and where its picture lies in it."""

    before: bytes
    after: bytes


def encode_example(
    values: Mapping[str, Value], picture_key: str, picture_length: int, number_list: int
) -> EncodedExample:
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
    return EncodedExample(b"".join(before), b"".join(after))


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
    values = message_head(1, length)
    feature = message_head(BYTES_LIST, len(values) + length)
    value = message_head(VALUE, len(feature) + len(values) + length)
    named = _named(key)
    entry = message_head(MAP_ENTRY, len(named) + len(value) + len(feature) + len(values) + length)
    return b"".join((entry, named, value, feature, values))


@dataclass(frozen=True)
class DecodedExample:
    """Where the bytes of a text or picture lie, and the first of each list of integers."""

    places: dict[str, tuple[int, int]]
    numbers: dict[str, int]

    def text(self, data: memoryview, key: str) -> str:
        begin, end = self.places.get(key, (0, 0))
        return bytes(data[begin:end]).decode("utf-8", "surrogateescape")


def features(data: memoryview, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Key of each feature, and where its lists begin and end; ValueError where it is no such record."""
    for field, _, start, stop in placed_fields(data, begin, end):
        if field != MAP_ENTRY:
            continue
        parts = {number: (at, to) for number, _, at, to in placed_fields(data, start, stop)}
        if KEY in parts and VALUE in parts:
            yield bytes(data[slice(*parts[KEY])]).decode("utf-8", "replace"), *parts[VALUE]


def decode_example(data: memoryview, begin: int, end: int, number_list: int) -> DecodedExample:
    """ValueError where it is no such record; lists of floats are passed over."""
    places: dict[str, tuple[int, int]] = {}
    numbers: dict[str, int] = {}
    for key, start, stop in features(data, begin, end):
        for kind, _, at, to in placed_fields(data, start, stop):
            for _, _, first, last in placed_fields(data, at, to):
                if kind == BYTES_LIST:
                    places.setdefault(key, (first, last))
                elif kind == number_list:
                    # The first of a packed list, or the number by itself.
                    number = read_varint(data, first)[0] if last > first else 0
                    numbers.setdefault(key, signed(number))
    return DecodedExample(places, numbers)
