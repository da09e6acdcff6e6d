"""A set in class folders, `SPLIT/CLASS/NAME.JPEG`: how an image is written, and how the set is finished."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.datasets import checksums
from trainmark.datasets.files import whole_file, write_whole
from trainmark.datasets.index import (
    CHECKSUMS,
    DATASET,
    RECORD,
    Dataset,
    SplitIndex,
    dataset_bytes,
    write_dataset,
    write_index,
)
from trainmark.datasets.journal import Entry, Journal

FORMAT = "folder"


def write_image(split: Path, name: str, content: bytes) -> Entry:
    path = split / name
    try:
        write_whole(path, content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    return Entry(name, len(content), zlib.crc32(content), checksums.of_bytes(content))


def intact(journal: Journal, chunk: str, split: Path) -> bool:
    """Whether this chunk is done and its files are still there, of the size they had."""
    if not journal.has(chunk):
        return False
    return all(_size(split / entry.name) == entry.size for entry in journal.read(chunk).entries)


def finish(
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
    dataset = Dataset(FORMAT, tuple(classes), counts, about)
    sums[DATASET] = checksums.of_bytes(dataset_bytes(dataset))
    with whole_file(root / CHECKSUMS) as file:
        file.writelines(checksums.line(sums[path], path) for path in sorted(sums))
    write_dataset(root, dataset)
    journal.close()
    return total


def folder_index(entries: Sequence[Entry], labels: Mapping[str, int]) -> SplitIndex:
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
