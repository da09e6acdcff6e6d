"""Files of a set: its index, its checksums; written whole or not at all, mapped as memory, read by place.

The index tells where each record lies, so that one pread gets any image of any format.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import mmap
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError

PART_ENDING = ".part"
# Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Writes under another name in the same folder; the name comes with the end, or nothing is left.

    Without fsync: a set is checked by its checksums, and a million small syncs take hours.
    """
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


def part_of(path: Path) -> Path:
    """Of this process only: two that write the same file do not write into each other's."""
    return path.with_name(f".{path.name}.{os.getpid()}{PART_ENDING}")


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(PART_ENDING)


def lines_of(names: Iterable[str]) -> bytes:
    """A line for each name, which need not be UTF-8."""
    return "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")


def read_lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]


def copy_into(write: Callable[[bytes], object], path: Path) -> None:
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            write(chunk)


@contextlib.contextmanager
def open_descriptor(path: Path) -> Iterator[int]:
    """A descriptor to read from at any place."""
    descriptor = os.open(path, READ)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def mapped_file(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")
            return
        # Unmapped when the last view of it goes: a view in a traceback must not be pulled from under it.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


OPEN_FILES = 64


class Shards:
    """Reads out of a few files at a time, by their place in `names`."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names
        self._open: OrderedDict[int, int] = OrderedDict()

    def read(self, shard: int, offset: int, size: int) -> bytes:
        """Fewer bytes than `size` where the file ends before."""
        return os.pread(self._descriptor(shard), size, offset)

    def _descriptor(self, shard: int) -> int:
        if shard not in self._open:
            if len(self._open) >= OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
            self._open[shard] = os.open(self._folder / self._names[shard], READ)
        self._open.move_to_end(shard)
        return self._open[shard]

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


CHUNK = 1 << 20
CHECKSUMS = "checksums.txt"
# Strict, so that every flipped byte of the list shows: lower case, two blanks.
CHECKSUM_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n", re.DOTALL)


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def checksum_of(path: Path) -> str:
    summed = hashlib.sha256()
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            summed.update(view[:count])
    return summed.hexdigest()


def checksum_line(checksum: str, path: str) -> bytes:
    """A line in the form that `sha256sum --check` reads."""
    return lines_of([f"{checksum}  {path}"])


def write_checksums(root: Path, sums: Mapping[str, str]) -> None:
    """By path, sorted."""
    with whole_file(root / CHECKSUMS) as file:
        file.writelines(checksum_line(sums[path], path) for path in sorted(sums))


def read_checksums(path: Path) -> Iterator[tuple[int, str, str]]:
    """The number of each line, the checksum and the path; both are "" where it is no such line."""
    with path.open("rb") as lines:
        for number, entry in enumerate(lines, 1):
            if match := CHECKSUM_LINE.fullmatch(entry):
                yield number, match[1].decode(), match[2].decode("utf-8", "surrogateescape")
            else:
                yield number, "", ""


VERSION = 1
SPLITS = ("train", "val")
DATASET, INDEX, SHARDS, NAMES = "dataset.json", "index.npy", "shards.txt", "names.txt"

# begin and length: the whole record in its shard; offset and size: the image's own bytes in the same file;
# crc: zlib.crc32 of the whole record; label: the place of the class among the sorted names.
RECORD = np.dtype(
    [
        ("shard", "<u4"),
        ("begin", "<u8"),
        ("length", "<u4"),
        ("offset", "<u8"),
        ("size", "<u4"),
        ("label", "<i4"),
        ("crc", "<u4"),
    ]
)
Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class SplitIndex:
    """One row and one name a record, in record order; `shards` are paths relative to the split's folder."""

    rows: Rows
    shards: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class ImageDataset:
    format: str
    classes: tuple[str, ...]
    splits: Mapping[str, int]
    about: Mapping[str, Any] = field(default_factory=dict)


def write_index(folder: Path, index: SplitIndex) -> dict[str, bytes]:
    """Writes its three files, each whole or not at all, and gives back what was written by name."""
    if not len(index.rows) == len(index.names):
        raise ValueError(f"{len(index.rows)} rows, but {len(index.names)} names")
    for name in (*index.shards, *index.names):
        if "\n" in name or "\r" in name:
            raise UserError(f"the name {name!r} has a line break in it; rename that file.")
    array = io.BytesIO()
    np.save(array, np.ascontiguousarray(index.rows, dtype=RECORD), allow_pickle=False)
    files = {INDEX: array.getvalue(), SHARDS: lines_of(index.shards), NAMES: lines_of(index.names)}
    for name, content in files.items():
        write_whole(folder / name, content)
    return files


def read_index(folder: Path) -> SplitIndex:
    rows = _rows(folder / INDEX)
    shards, names = _names(folder / SHARDS), _names(folder / NAMES)
    if len(names) != len(rows):
        raise UserError(f"{folder}: {INDEX} has {len(rows)} records but {NAMES} {len(names)} lines; {_MEND}")
    if len(rows) and int(rows["shard"].max()) >= len(shards):
        raise UserError(f"{folder}: {INDEX} names a shard that {SHARDS} does not have; {_MEND}")
    return SplitIndex(rows, shards, names)


def dataset_bytes(dataset: ImageDataset) -> bytes:
    value = {
        "trainmark_dataset": VERSION,
        "format": dataset.format,
        "classes": list(dataset.classes),
        "splits": dict(dataset.splits),
        "about": dict(dataset.about),
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def write_dataset(root: Path, dataset: ImageDataset) -> bytes:
    """To be called last: a folder without this file is unfinished."""
    content = dataset_bytes(dataset)
    write_whole(root / DATASET, content)
    return content


def read_dataset(root: Path) -> ImageDataset:
    path = root / DATASET
    try:
        value = json.loads(path.read_bytes())
        if value["trainmark_dataset"] != VERSION:
            raise UserError(f"{path} is of version {value['trainmark_dataset']}, which is not known here.")
        return ImageDataset(
            format=str(value["format"]),
            classes=tuple(str(name) for name in value["classes"]),
            splits={str(split): int(count) for split, count in value["splits"].items()},
            about=dict(value.get("about", {})),
        )
    except FileNotFoundError as error:
        if not root.exists():
            raise UserError(f"{root} does not exist; name the folder of a set.") from error
        raise UserError(
            f"{root} has no {DATASET}: it is unfinished, or made by others (`trainmark data index`)."
        ) from error
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}); {_MEND}") from error


_MEND = "see `trainmark data verify`, and make the set again."


def _rows(path: Path) -> Rows:
    try:
        rows: Rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing; `trainmark data index` makes it.") from error
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}); {_MEND}") from error
    if getattr(rows, "dtype", None) != RECORD or rows.ndim != 1:
        raise UserError(f"{path} is no index of records; {_MEND}")
    return rows


def _names(path: Path) -> tuple[str, ...]:
    try:
        return tuple(read_lines(path))
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing; `trainmark data index` makes it.") from error
