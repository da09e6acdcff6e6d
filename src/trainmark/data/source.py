"""Where pictures come from: a set of ours in any format, or folders and lists that somebody else made.

What is to be written is listed on disk, in its order, so that memory stays flat.
"""

from __future__ import annotations

import functools
import hashlib
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainmark.base.errors import UserError
from trainmark.data import formats
from trainmark.data.files import (
    CHECKSUMS,
    DATASET,
    INDEX,
    NAMES,
    SHARDS,
    SPLITS,
    is_part,
    lines_of,
    mapped_file,
    read_dataset,
    read_index,
    whole_file,
)
from trainmark.data.journal import UNFINISHED_FOLDER
from trainmark.data.picture import EMPTY_CLASS, NO_LABEL, UNREADABLE_FOLDER, PictureDefect
from trainmark.data.records import Loose, Sharded

OWN_FILES = frozenset({INDEX, SHARDS, NAMES})
ROOT_FILES = frozenset({DATASET, CHECKSUMS})


class SourcePicture(NamedTuple):
    """`path` is relative to the set's folder where the picture is a file of its own, else its name."""

    path: str
    label: int
    size: int
    shard: int = 0
    offset: int = 0


@dataclass(frozen=True)
class ImageSource:
    """A set to read from; `folders` has the folder of each split."""

    root: Path
    format: str
    classes: tuple[str, ...]
    folders: dict[str, Path]

    @functools.cached_property
    def loose(self) -> bool:
        return isinstance(formats.named(self.format), Loose)

    def pictures(self, split: str) -> Iterator[SourcePicture | PictureDefect]:
        """In a fixed order; what is no picture but should be is told in between."""
        if self.format == "list":
            return _listed(self.root, split)
        return _in_folders(self, split) if self.loose else _indexed(self.folders[split])

    def name(self, split: str, path: str) -> str:
        """CLASS/NAME.JPEG of a picture's path."""
        return path.removeprefix(f"{split}/") if self.loose else path


def open_source(root: Path) -> ImageSource:
    if not root.is_dir():
        raise UserError(
            f"{root} is no folder; name the folder of a set, such as `trainmark data make` makes."
        )
    if (root / DATASET).exists():
        dataset = read_dataset(root)
        formats.named(dataset.format)
        folders = {split: root / split for split in dataset.splits}
        if dataset.format == "folder" and any((root / name).is_dir() for name in dataset.classes):
            folders = {"train": root}  # class folders without a split; train/ has only the index
        return ImageSource(root, dataset.format, dataset.classes, folders)
    if (root / UNFINISHED_FOLDER).exists():
        raise UserError(f"{root} is unfinished; give the command that began it once more, and it goes on.")
    splits = {split: root / split for split in SPLITS if (root / split).is_dir()}
    if any((root / f"{split}{_LIST}").is_file() for split in SPLITS):
        listed = {split: root for split in SPLITS if (root / f"{split}{_LIST}").is_file()}
        return ImageSource(root, "list", _listed_classes(root, listed), listed)
    folders = splits or {"train": root}
    classes = sorted({name for folder in folders.values() for name in _class_names(folder)})
    if not classes:
        raise UserError(f"{root} has no class folders{_hint(root, folders)}")
    return ImageSource(root, "folder", tuple(classes), folders)


_LIST = "_list.txt"


def _hint(root: Path, folders: dict[str, Path]) -> str:
    for name in formats.names():
        form = formats.named(name)
        if isinstance(form, Sharded) and any(
            next(folder.glob(pattern), None) for folder in folders.values() for pattern in form.patterns
        ):
            return f", but looks like {name}: `trainmark data index {root}` makes it a set."
    return "; a set has train/CLASS/PICTURE.JPEG and val/CLASS/PICTURE.JPEG."


def _class_names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if not entry.name.startswith(".") and _is_class(entry)]


def _is_class(entry: os.DirEntry[str]) -> bool:
    """A link that leads nowhere counts: somebody meant a class by it."""
    return entry.is_dir() or (entry.is_symlink() and not Path(entry.path).exists() and "." not in entry.name)


def _in_folders(source: ImageSource, split: str) -> Iterator[SourcePicture | PictureDefect]:
    folder = source.folders[split]
    prefix = "" if folder == source.root else f"{split}/"
    here = set(_class_names(folder)) - (set() if prefix else set(SPLITS))
    labels = {name: label for label, name in enumerate(source.classes)}
    for name in sorted({*here, *source.classes}):
        if name not in here:
            yield PictureDefect(f"{prefix}{name}", (EMPTY_CLASS,), tolerated=True)
            continue
        try:
            files = sorted(_files(folder / name))
        except OSError as error:
            yield PictureDefect(f"{prefix}{name}", (UNREADABLE_FOLDER,), note=error.strerror or "")
            continue
        if not files:
            yield PictureDefect(f"{prefix}{name}", (EMPTY_CLASS,), tolerated=True)
        for file, size in files:
            yield SourcePicture(f"{prefix}{name}/{file}", labels.get(name, -1), size)
    own = OWN_FILES if prefix else OWN_FILES | ROOT_FILES
    for stray in sorted({path.name for path in folder.iterdir()} - here - own - set(SPLITS)):
        if not stray.startswith("."):
            yield PictureDefect(f"{prefix}{stray}", (NO_LABEL,), note="it lies in no class folder")


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Names and sizes; hidden files are no pictures. Whether a name can be read is seen when it is read."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and not is_part(entry.name):
                try:
                    yield entry.name, entry.stat().st_size
                except OSError:
                    yield entry.name, 0


def _listed(root: Path, split: str) -> Iterator[SourcePicture | PictureDefect]:
    path = root / f"{split}{_LIST}"
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            name, _, label = line.rstrip("\n").rpartition(" ")
            if not name or not label.lstrip("-").isdigit():
                yield PictureDefect(f"{path.name}:{number}", (NO_LABEL,), note="a line is `path label`")
                continue
            try:
                size = (root / name).stat().st_size
            except (OSError, ValueError):
                size = 0
            yield SourcePicture(name, int(label), size)


def _listed_classes(root: Path, splits: dict[str, Path]) -> tuple[str, ...]:
    """Named after the folders where each label has one of its own, else after the labels."""
    names: dict[int, str] = {}
    for split in splits:
        for picture in _listed(root, split):
            if isinstance(picture, SourcePicture) and picture.label >= 0:
                folder = picture.path.rpartition("/")[0].removeprefix(f"{split}/")
                names[picture.label] = folder if names.get(picture.label, folder) == folder else ""
    return numbered_classes(names)


def numbered_classes(named: dict[int, str]) -> tuple[str, ...]:
    """What each label is called, or the numbers, as wide as needed to be sorted, where some have no name."""
    labels = range(max(named, default=-1) + 1)
    names = [named.get(label, "") for label in labels]
    if all(names) and names == sorted(set(names)):
        return tuple(names)
    return tuple(f"{label:0{len(str(len(labels)))}d}" for label in labels)


def _indexed(folder: Path) -> Iterator[SourcePicture | PictureDefect]:
    index = read_index(folder)
    for row, name in zip(index.rows, index.names, strict=True):
        yield SourcePicture(name, int(row["label"]), int(row["size"]), int(row["shard"]), int(row["offset"]))


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


def read_listing(folder: Path, first: int, last: int) -> Iterator[ListedPicture]:
    """Those from number `first` up to `last`."""
    entries = np.load(folder / ENTRIES, mmap_mode="r", allow_pickle=False)
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
        summed.update(lines_of([f"{listed.number} {listed.label} {listed.size} {listed.path}"]))
    return summed.hexdigest()
