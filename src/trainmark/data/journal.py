"""What is done of a set in the making, so that it can go on; sets in class folders, written and finished."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.base.errors import UserError
from trainmark.data import checksums
from trainmark.data.files import is_part, whole_file, write_whole
from trainmark.data.index import (
    CHECKSUMS,
    DATASET,
    RECORD,
    ImageDataset,
    SplitIndex,
    dataset_bytes,
    read_dataset,
    write_dataset,
    write_index,
)

UNFINISHED_FOLDER = ".unfinished"
PLAN = "plan.json"


@dataclass(frozen=True)
class FileEntry:
    """One image file: its name within the split (CLASS/NAME.JPEG) and what its bytes add up to."""

    name: str
    size: int
    crc: int
    sha256: str

    def line(self) -> str:
        return f"{self.sha256} {self.crc} {self.size} {self.name}"

    @classmethod
    def of(cls, line: str) -> FileEntry:
        sha256, crc, size, name = line.split(" ", 3)
        return cls(name, int(size), int(crc), sha256)


@dataclass(frozen=True)
class Chunk:
    """What one task wrote, and one sentence for each thing it met that a person should know."""

    entries: tuple[FileEntry, ...]
    notes: tuple[str, ...] = ()


class Journal:
    """`ROOT/.unfinished/`: the plan, and a file for each chunk that is done."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / UNFINISHED_FOLDER

    def open(self, plan: Mapping[str, Any]) -> bool:
        """Begins the set, or goes on with it; False where it is there already, whole, from the same plan."""
        if (self.root / DATASET).exists():
            _require_same_plan(self.root, plan, read_dataset(self.root).about)
            self._remove()
            return False
        if (self.folder / PLAN).exists():
            _require_same_plan(self.root, plan, _read(self.folder / PLAN))
            _sweep(self.root)
            return True
        if self.root.exists() and (not self.root.is_dir() or any(self.root.iterdir())):
            raise UserError(
                f"{self.root} exists and is no unfinished set; choose a folder that is new or empty."
            )
        self.folder.mkdir(parents=True)
        write_whole(self.folder / PLAN, (json.dumps(dict(plan), indent=1) + "\n").encode())
        return True

    def keep(self, chunk: str, done: Chunk) -> None:
        lines = [*(entry.line() for entry in done.entries), *(f"! {note}" for note in done.notes)]
        write_whole(
            self.folder / chunk, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        )

    def has(self, chunk: str) -> bool:
        return (self.folder / chunk).exists()

    def read(self, chunk: str) -> Chunk:
        text = (self.folder / chunk).read_bytes().decode("utf-8", "surrogateescape")
        lines = text.split("\n")[:-1]
        return Chunk(
            tuple(FileEntry.of(line) for line in lines if not line.startswith("! ")),
            tuple(line[2:] for line in lines if line.startswith("! ")),
        )

    def forget(self, chunks: Iterable[str]) -> None:
        for chunk in chunks:
            (self.folder / chunk).unlink(missing_ok=True)

    def close(self) -> None:
        """Called when dataset.json is there."""
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _require_same_plan(root: Path, plan: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    for name, wanted in plan.items():
        if before.get(name) != wanted:
            raise UserError(
                f"{root} was begun with {name} = {before.get(name)}, not {wanted}; "
                "give the same arguments again, or choose another folder."
            )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
        return dict(value)
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove {path.parents[1]} and begin again.") from error


def _sweep(root: Path) -> None:
    """Half-written files of a process that was killed."""
    for path in root.rglob(".*"):
        if is_part(path.name):
            path.unlink(missing_ok=True)


FOLDER_FORMAT = "folder"


def write_image(split: Path, name: str, content: bytes) -> FileEntry:
    path = split / name
    try:
        write_whole(path, content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    return FileEntry(name, len(content), zlib.crc32(content), checksums.of_bytes(content))


def is_chunk_intact(journal: Journal, chunk: str, split: Path) -> bool:
    """Whether this chunk is done and its files are still there, of the size they had."""
    if not journal.has(chunk):
        return False
    return all(_size(split / entry.name) == entry.size for entry in journal.read(chunk).entries)


def finish_folder_set(
    journal: Journal, classes: Sequence[str], chunks: Mapping[str, Sequence[str]], about: Mapping[str, Any]
) -> int:
    """Index, checksums and at last dataset.json, from what the journal has; the bytes of all images."""
    root, total = journal.root, 0
    labels = {name: label for label, name in enumerate(classes)}
    sums: dict[str, str] = {}
    counts = {}
    for split, names in chunks.items():
        entries = sorted(
            (entry for name in names for entry in journal.read(name).entries), key=lambda entry: entry.name
        )
        (root / split).mkdir(exist_ok=True)
        for name, content in write_index(root / split, folder_index(entries, labels)).items():
            sums[f"{split}/{name}"] = checksums.of_bytes(content)
        sums.update((f"{split}/{entry.name}", entry.sha256) for entry in entries)
        counts[split] = len(entries)
        total += sum(entry.size for entry in entries)
    dataset = ImageDataset(FOLDER_FORMAT, tuple(classes), counts, about)
    sums[DATASET] = checksums.of_bytes(dataset_bytes(dataset))
    with whole_file(root / CHECKSUMS) as file:
        file.writelines(checksums.line(sums[path], path) for path in sorted(sums))
    write_dataset(root, dataset)
    journal.close()
    return total


def folder_index(entries: Sequence[FileEntry], labels: Mapping[str, int]) -> SplitIndex:
    """Every image is a shard of its own."""
    rows = np.zeros(len(entries), RECORD)
    rows["shard"] = np.arange(len(entries))
    rows["length"] = rows["size"] = [entry.size for entry in entries]
    rows["label"] = [labels[entry.name.partition("/")[0]] for entry in entries]
    rows["crc"] = [entry.crc for entry in entries]
    names = tuple(entry.name for entry in entries)
    return SplitIndex(rows, names, names)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
