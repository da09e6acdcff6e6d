"""All pictures of a split in the order in which they will be written: on disk, so that memory stays flat."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.data.defects import PictureDefect
from trainmark.data.files import mapped_file, whole_file
from trainmark.data.source import ImageSource, SourcePicture

LISTING_ENTRY = np.dtype(
    [
        ("path_at", "<u8"),
        ("path_length", "<u4"),
        ("label", "<i4"),
        ("shard", "<u4"),
        ("offset", "<u8"),
        ("size", "<u8"),
    ]
)
PATHS, ENTRIES = "paths", "entries.npy"


class ListedPicture(NamedTuple):
    """A picture to be written, and its number in the split."""

    number: int
    path: str
    label: int
    shard: int
    offset: int
    size: int


@dataclass(frozen=True)
class ListingSummary:
    count: int
    bytes: int
    largest: int
    troubles: tuple[PictureDefect, ...]


def write_listing(source: ImageSource, split: str, folder: Path, seed: int | None) -> ListingSummary:
    """Lists the split into `folder`; shuffled where a seed is given."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {name: array("Q" if name != "label" else "q") for name in LISTING_ENTRY.names or ()}
    troubles = []
    with whole_file(folder / PATHS) as file:
        at = 0
        for picture in source.pictures(split):
            if isinstance(picture, PictureDefect):
                troubles.append(picture)
                continue
            path = picture.path.encode("utf-8", "surrogateescape")
            file.write(path)
            for name, value in zip(columns, _values(picture, at, len(path)), strict=True):
                columns[name].append(value)
            at += len(path)
    entries = np.empty(len(columns["label"]), LISTING_ENTRY)
    for name, values in columns.items():
        entries[name] = values
    if seed is not None:
        entries = entries[np.random.default_rng(seed).permutation(len(entries))]
    with whole_file(folder / ENTRIES) as file:
        np.save(file, entries, allow_pickle=False)
    sizes = entries["size"]
    return ListingSummary(len(entries), int(sizes.sum()), int(sizes.max(initial=0)), tuple(troubles))


def _values(picture: SourcePicture, at: int, length: int) -> tuple[int, ...]:
    label = picture.label if -1 <= picture.label < 1 << 31 else -1
    return at, length, label, picture.shard, picture.offset, picture.size


def entries_of(folder: Path) -> npt.NDArray[np.void]:
    entries: npt.NDArray[np.void] = np.load(folder / ENTRIES, mmap_mode="r", allow_pickle=False)
    return entries


def read_listing(folder: Path, first: int, last: int) -> Iterator[ListedPicture]:
    """Those from number `first` up to `last`."""
    entries = entries_of(folder)
    with mapped_file(folder / PATHS) as paths:
        for block in range(first, last, 4096):
            rows = entries[block : min(block + 4096, last)].tolist()
            for number, (at, length, label, shard, offset, size) in enumerate(rows, block):
                path = str(paths[at : at + length], "utf-8", "surrogateescape")
                yield ListedPicture(number, path, label, shard, offset, size)


def listing_digest(folder: Path, first: int, last: int) -> str:
    """What a shard is made of: other pictures, another order or other sizes give another."""
    summed = hashlib.sha256()
    for listed in read_listing(folder, first, last):
        line = f"{listed.number} {listed.label} {listed.size} {listed.path}\n"
        summed.update(line.encode("utf-8", "surrogateescape"))
    return summed.hexdigest()
