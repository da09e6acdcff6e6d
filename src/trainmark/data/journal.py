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
from trainmark.data.files import checksum, is_part, lines_of, read_lines, write_checksums, write_whole
from trainmark.data.index import (
    DATASET,
    RECORD,
    ImageDataset,
    SplitIndex,
    dataset_bytes,
    read_dataset,
    write_index,
)
from trainmark.data.jobs import Job, Progress, results

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
            require_same_plan(self.root, plan, read_dataset(self.root).about)
            self.close()
            return False
        if (self.folder / PLAN).exists():
            require_same_plan(self.root, plan, read_plan(self.folder / PLAN))
            # Half-written files of a process that was killed.
            for path in self.root.rglob(".*"):
                if is_part(path.name):
                    path.unlink(missing_ok=True)
            return True
        refuse_other_content(self.root)
        self.folder.mkdir(parents=True)
        write_whole(self.folder / PLAN, json_bytes(plan))
        return True

    def carry_out(self, jobs: Sequence[Job[Chunk]], workers: int, progress: Progress) -> list[Job[Chunk]]:
        """Do what is not done yet, and keep what each wrote under its key; return these."""
        todo = [job for job in jobs if not self._is_intact(job.key)]
        done_before = sum(job.size for job in jobs) - sum(job.size for job in todo)
        for job, chunk in results(todo, workers, progress, done_before):
            notes = (f"! {note}" for note in chunk.notes)
            write_whole(self.folder / job.key, lines_of([*(entry.line() for entry in chunk.entries), *notes]))
        return todo

    def _is_intact(self, chunk: str) -> bool:
        """Whether this chunk is done and its files are still there, of the size they had."""
        if not (self.folder / chunk).exists():
            return False
        split = self.root / chunk.partition("-")[0]
        return all(_size(split / entry.name) == entry.size for entry in self.read(chunk).entries)

    def read(self, chunk: str) -> Chunk:
        lines = read_lines(self.folder / chunk)
        return Chunk(
            tuple(FileEntry.of(line) for line in lines if not line.startswith("! ")),
            tuple(line[2:] for line in lines if line.startswith("! ")),
        )

    def forget(self, chunks: Iterable[str]) -> None:
        for chunk in chunks:
            (self.folder / chunk).unlink(missing_ok=True)

    def close(self) -> None:
        """Called when dataset.json is there."""
        shutil.rmtree(self.folder, ignore_errors=True)


def require_same_plan(root: Path, plan: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    for name, wanted in plan.items():
        if before.get(name) != wanted:
            raise UserError(
                f"{root} was begun with {name} = {before.get(name)}, not {wanted}; "
                "give the same arguments again, or choose another folder."
            )


def refuse_other_content(root: Path) -> None:
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UserError(f"{root} exists and is no unfinished set; choose a folder that is new or empty.")


def read_plan(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove {path.parents[1]} and begin again.") from error


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write_image(split: Path, name: str, content: bytes) -> FileEntry:
    path = split / name
    try:
        write_whole(path, content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    return FileEntry(name, len(content), zlib.crc32(content), checksum(content))


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
            sums[f"{split}/{name}"] = checksum(content)
        sums.update((f"{split}/{entry.name}", entry.sha256) for entry in entries)
        counts[split] = len(entries)
        total += sum(entry.size for entry in entries)
    content = dataset_bytes(ImageDataset("folder", tuple(classes), counts, about))
    write_checksums(root, {**sums, DATASET: checksum(content)})
    write_whole(root / DATASET, content)
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
