"""What every format has in common: a shard is written record by record, and found again in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from trainmark.datasets.records.shard_file import RecordOffset, ShardFile

# ImageNet's pictures: a set of another size has shards in proportion.
TRAIN, VAL = 1_281_167, 50_000


class Record(NamedTuple):
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
class Shard:
    """One shard to be written: which of how many, how many records at most, and the largest of them."""

    split: str
    number: int
    total: int
    records: int
    largest: int


class DamageError(ValueError):
    """A shard is not what its format says; the message names the place, not the file."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"{what} at byte {position:,}")
        self.position = position


class Format(ABC):
    """A format is a file in `formats/` that has one of these as FORMAT, under the format's name."""

    name: ClassVar[str]
    #: What its readers cannot cope with, of what can be odd in a picture.
    unfit: ClassVar[frozenset[str]] = frozenset()
    #: What no name may contain: names are lines of text files.
    forbidden: ClassVar[str] = "\n\r"
    #: No picture may be larger.
    largest: ClassVar[int] = (1 << 32) - (1 << 20)


class Loose(Format):
    """Every picture is a file of its own, in a folder for each class."""

    #: A list of them with their labels in the set's folder, such as `train_list.txt`.
    list_ending: ClassVar[str] = ""


class Sharded(Format):
    """Many pictures share a file."""

    #: How many files ImageNet has in this format.
    train_shards: ClassVar[int]
    val_shards: ClassVar[int]
    #: What their names look like where somebody else made them.
    patterns: ClassVar[tuple[str, ...]]

    def shard_count(self, split: str, records: int) -> int:
        full, of = (self.val_shards, VAL) if split == "val" else (self.train_shards, TRAIN)
        return max(1, min(records, round(full * records / of)))

    @abstractmethod
    def shard_name(self, split: str, number: int, total: int) -> str: ...

    @abstractmethod
    def write(self, file: ShardFile, records: Iterable[Record], shard: Shard) -> Iterator[RecordOffset]:
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

    def side_lines(self, record: Record, place: RecordOffset) -> tuple[str, ...]:
        """A line for each of them."""
        return ()

    def finish(self, shard_name: str, part: Path) -> dict[str, Path]:
        """Other files that belong to the shard, which is whole at `part`: by name, made beside it."""
        return {}
