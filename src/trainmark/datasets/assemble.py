"""A set is put together from what the journal knows of its shards: index, names, lists, checksums."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainmark.datasets import checksums
from trainmark.datasets.files import whole_file, write_whole
from trainmark.datasets.index import CHECKSUMS, DATASET, INDEX, NAMES, RECORD, SHARDS, Dataset, dataset_bytes
from trainmark.datasets.records.format import Format, Loose
from trainmark.datasets.records.shard_file import ShardFile
from trainmark.datasets.shard_record import BESIDE, WHOLE, ShardRecord


@dataclass(frozen=True)
class SplitParts:
    """What the journal has of a split, and the names of its shards: none where pictures are files."""

    split: str
    parts: Sequence[ShardRecord]
    shards: Sequence[str]

    @property
    def count(self) -> int:
        return sum(part.written for part in self.parts)


class Assembly:
    """Writes a split's index files, remembers their checksums, and finishes the set."""

    def __init__(self, root: Path, to: Format) -> None:
        self._root, self._to = root, to
        self._sums: list[bytes] = []

    def split(self, parts: SplitParts) -> None:
        folder = f"{parts.split}/"
        (self._root / parts.split).mkdir(exist_ok=True)
        with self._file(folder + NAMES) as file:
            _copy(file, [part.path("names") for part in parts.parts])
        with self._file(folder + SHARDS) as file:
            for name in _with_second_files(parts):
                file.write(f"{name}\n".encode("utf-8", "surrogateescape"))
            if not parts.shards:
                _copy(file, [part.shards() for part in parts.parts])
        with self._file(folder + INDEX) as file:
            file.write(_npy_head(parts.count))
            for rows in self._rows(parts):
                file.write(rows.tobytes())
        if isinstance(self._to, Loose) and self._to.list_ending:
            with self._file(f"{parts.split}{self._to.list_ending}") as file:
                for line in _list_lines(parts):
                    file.write(line)

    def _rows(self, parts: SplitParts) -> Iterator[np.ndarray]:
        loose, total, second, first = isinstance(self._to, Loose), len(parts.parts), 0, 0
        for number, part in enumerate(parts.parts):
            rows = part.rows()
            if loose:
                rows["shard"] = np.arange(first, first + len(rows))
            else:
                rows["shard"] = np.where(rows["shard"] == BESIDE, total + second, number)
                second += part.has_second
            first += len(rows)
            yield rows

    @contextmanager
    def _file(self, path: str) -> Iterator[ShardFile]:
        with whole_file(self._root / path) as raw:
            file = ShardFile(raw)
            yield file
            self._sums.append(checksums.line(file.finish(), path))

    def finish(self, dataset: Dataset, splits: Sequence[SplitParts]) -> None:
        """dataset.json comes last: a folder without it is unfinished."""
        content = dataset_bytes(dataset)
        with whole_file(self._root / CHECKSUMS) as file:
            for parts in splits:
                for part in parts.parts:
                    file.write(part.path("sums").read_bytes())
            file.writelines(self._sums)
            file.write(checksums.line(checksums.of_bytes(content), DATASET))
        write_whole(self._root / DATASET, content)


def _with_second_files(parts: SplitParts) -> list[str]:
    """The shards, and behind them the second files that some have."""
    pairs = zip(parts.shards, parts.parts, strict=False)
    return [*parts.shards, *(name + WHOLE for name, part in pairs if part.has_second)]


def _list_lines(parts: SplitParts) -> Iterator[bytes]:
    prefix = f"{parts.split}/".encode()
    for part in parts.parts:
        with part.path("names").open("rb") as names:
            for name, label in zip(names, part.rows()["label"].tolist(), strict=True):
                yield prefix + name.rstrip(b"\n") + b" %d\n" % label


def _copy(file: ShardFile, paths: Sequence[Path]) -> None:
    for path in paths:
        with path.open("rb") as source:
            while chunk := source.read(1 << 20):
                file.write(chunk)


def _npy_head(count: int) -> bytes:
    """What numpy writes before an array of records."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": RECORD.descr, "fortran_order": False, "shape": (count,)}
    )
    return head.getvalue()
