"""The index of a set: where each record lies, so that one pread gets any image of any format."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import lines_of, read_lines, write_whole

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
