"""One file against its checksum; where it differs, its records against theirs. Runs in its own process."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmark.datasets import checksums
from trainmark.datasets.index import INDEX, NAMES, RECORD, SHARDS
from trainmark.datasets.verify.finding import DIFFERS, MISSING, SHORT, UNREADABLE, Finding


@dataclass(frozen=True)
class Task:
    """Some files of the set with the checksums they should have."""

    root: Path
    splits: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


def verify_files(task: Task) -> list[Finding]:
    findings = (_verify(task, path, checksum) for path, checksum in task.files)
    return [finding for finding in findings if finding is not None]


def _verify(task: Task, path: str, checksum: str) -> Finding | None:
    file = task.root / path
    try:
        if checksums.of_file(file) == checksum:
            return None
        return _damage(task, path, file)
    except FileNotFoundError:
        return Finding(path, MISSING, "is missing")
    except OSError as error:
        return Finding(path, UNREADABLE, f"cannot be read ({error.strerror})")


def _damage(task: Task, path: str, file: Path) -> Finding:
    """Which records of a file that differs are damaged, as far as the index can tell."""
    split = next((split for split in task.splits if path.startswith(f"{split}/")), None)
    if path.endswith((INDEX, SHARDS, NAMES)) or split is None:
        return Finding(path, DIFFERS, "differs from its checksum")
    split_index = _index(task.root / split)
    if split_index is None:
        return Finding(path, DIFFERS, "differs; the index is damaged too, so that no record can be named")
    rows, shards, names = split_index
    try:
        number = shards.index(path.removeprefix(f"{split}/"))
    except ValueError:
        return Finding(path, DIFFERS, "differs from its checksum; it holds no record")
    mine = np.flatnonzero(rows["shard"] == number)
    size = file.stat().st_size
    ends = int((rows["begin"][mine] + rows["length"][mine]).max(initial=0))
    damaged = _damaged(file, rows, mine)
    named = tuple(names[place] if place < len(names) else f"record {place}" for place in damaged)
    if size < ends:
        return Finding(path, SHORT, f"ends at byte {size:,}, before its last record ends; damaged are", named)
    if not named:
        return Finding(path, DIFFERS, "differs outside every record")
    return Finding(path, DIFFERS, "has damaged records", named)


def _damaged(file: Path, rows: npt.NDArray[np.void], mine: npt.NDArray[np.intp]) -> list[int]:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return [
            int(place)
            for place in mine
            if zlib.crc32(_read(descriptor, rows[place])) != rows[place]["crc"]
            or rows[place]["begin"] + rows[place]["length"] > os.fstat(descriptor).st_size
        ]
    finally:
        os.close(descriptor)


def _read(descriptor: int, row: np.void) -> bytes:
    return os.pread(descriptor, int(row["length"]), int(row["begin"]))


def _index(folder: Path) -> tuple[npt.NDArray[np.void], list[str], list[str]] | None:
    """As far as it can be read: it may be damaged itself."""
    try:
        rows = np.load(folder / INDEX, mmap_mode="r", allow_pickle=False)
        if rows.dtype != RECORD or rows.ndim != 1:
            return None
        return rows, _lines(folder / SHARDS), _lines(folder / NAMES)
    except (OSError, ValueError, EOFError, SyntaxError):
        return None


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\n")


def batches(root: Path, files: Sequence[tuple[str, str]]) -> list[tuple[tuple[str, str], ...]]:
    """Small files together, so that a task has some work to do."""
    tasks: list[tuple[tuple[str, str], ...]] = []
    batch: list[tuple[str, str]] = []
    size = 0
    for path, checksum in files:
        batch.append((path, checksum))
        try:
            size += (root / path).stat().st_size
        except OSError:
            size += 0
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            tasks.append(tuple(batch))
            batch, size = [], 0
    return [*tasks, tuple(batch)] if batch else tasks


BATCH_BYTES, BATCH_FILES = 64 << 20, 1000
