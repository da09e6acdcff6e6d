"""What is done of a set in the making, so that it can go on; and the set put together from that."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import (
    CHECKSUMS,
    DATASET,
    INDEX,
    NAMES,
    RECORD,
    SHARDS,
    ImageDataset,
    SplitIndex,
    checksum,
    checksum_line,
    checksum_of,
    copy_into,
    dataset_bytes,
    is_part,
    lines_of,
    read_checksums,
    read_dataset,
    read_lines,
    whole_file,
    write_checksums,
    write_index,
    write_whole,
)
from trainmark.data.jobs import Job, Progress, results
from trainmark.data.picture import PictureDefect
from trainmark.data.records import ImageFormat, Loose, RecordOffset, ShardFile

ROW = struct.Struct("<IQIQIiI")
PRINT_NUMBER = struct.Struct("<Q")
MAIN, BESIDE = 0, 1
#: The ending of a shard's second file, for pictures that the format has in pieces.
WHOLE = ".whole"
SAMPLE = 4096


@dataclass(frozen=True)
class ShardRecord:
    """The files of one shard in the journal; `.json` is written last and says that the others are whole."""

    folder: Path
    stem: str

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.stem}.{ending}"

    def rows(self) -> npt.NDArray[np.void]:
        """The index of this shard; `shard` is 0 for its file and 1 for the second one beside it."""
        return np.fromfile(self.path("rows"), RECORD)

    def names(self) -> list[str]:
        return read_lines(self.path("names"))

    def prints(self) -> npt.NDArray[np.uint64]:
        return np.fromfile(self.path("prints"), np.uint64)

    def facts(self) -> dict[str, Any]:
        """What is known once the shard is whole, else nothing."""
        try:
            return dict(json.loads(self.path("json").read_bytes()))
        except (OSError, ValueError):
            return {}

    def shards(self) -> Path:
        """Where each picture lies that is a file of its own: by default where its name says."""
        return self.path("shards") if self.path("shards").exists() else self.path("names")

    def troubles(self) -> list[PictureDefect]:
        return [
            PictureDefect(name, tuple(codes), tolerated, note)
            for name, codes, tolerated, note in self.facts().get("troubles", [])
        ]

    def forget(self) -> None:
        self.path("json").unlink(missing_ok=True)

    def is_there(self, split: Path) -> bool:
        """Whether it is done, and its pictures are still files of the size they had."""
        if not self.facts():
            return False
        sizes = zip(self.names(), self.rows()["size"].tolist(), strict=True)
        return all(_size(split / name) == size for name, size in sizes)

    def is_whole(self, digest: str, root: Path) -> bool:
        """Made of the same pictures, and every file of it has the bytes that were written."""
        facts = self.facts()
        try:
            return facts.get("digest") == digest and all(
                checksum_of(root / path) == wanted for _, wanted, path in read_checksums(self.path("sums"))
            )
        except OSError:
            return False


class ShardRecorder:
    """Writes them while the shard is written."""

    def __init__(self, record: ShardRecord) -> None:
        self._record = record
        self._files = ExitStack()
        self.count = 0
        self.troubles: list[PictureDefect] = []
        self.notes: list[str] = []

    def __enter__(self) -> ShardRecorder:
        self._record.forget()
        self._rows, self._names, self._prints, self._sums = (
            self._files.enter_context(self._record.path(ending).open("wb"))
            for ending in ("rows", "names", "prints", "sums")
        )
        return self

    def add(self, name: str, label: int, place: RecordOffset, picture: bytes) -> None:
        where = place.whole or place
        shard = BESIDE if place.whole else MAIN
        self._rows.write(
            ROW.pack(shard, where.begin, where.length, where.offset, where.size, label, where.crc)
        )
        self._names.write(lines_of([name]))
        # Two pictures with the same print are compared byte by byte; of different ones hardly any have it.
        middle = len(picture) // 2
        sample = zlib.crc32(picture[middle : middle + SAMPLE])
        self._prints.write(PRINT_NUMBER.pack((len(picture) & 0xFFFFFFFF) << 32 | sample))
        self.count += 1

    def add_file(self, checksum: str, path: str) -> None:
        self._sums.write(checksum_line(checksum, path))

    def add_picture(self, name: str, label: int, content: bytes, path: str) -> None:
        """One that is a file of its own, there in the set's folder."""
        size = len(content)
        self.add(name, label, RecordOffset(0, size, 0, size, zlib.crc32(content)), content)
        self.add_file(checksum(content), path)

    def done(self, digest: str = "", has_second: bool = False) -> None:
        self._files.close()
        facts = {
            "digest": digest,
            "written": self.count,
            "second_file": has_second,
            "troubles": [list(trouble) for trouble in self.troubles],
            "notes": self.notes,
        }
        write_whole(self._record.path("json"), json.dumps(facts).encode())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()


UNFINISHED_FOLDER = ".unfinished"
PLAN = "plan.json"


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

    def record(self, key: str) -> ShardRecord:
        return ShardRecord(self.folder, key)

    def carry_out(self, jobs: Sequence[Job[None]], workers: int, progress: Progress) -> list[Job[None]]:
        """Do what is not done yet and return it; each job writes the record of its key, SPLIT-…."""
        todo = [
            job for job in jobs if not self.record(job.key).is_there(self.root / job.key.partition("-")[0])
        ]
        done_before = sum(job.size for job in jobs) - sum(job.size for job in todo)
        for _ in results(todo, workers, progress, done_before):
            pass
        return todo

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


@dataclass(frozen=True)
class SplitParts:
    """What the journal has of a split, and the names of its shards: none where pictures are files."""

    split: str
    parts: Sequence[ShardRecord]
    shards: Sequence[str]

    @property
    def count(self) -> int:
        return sum(part.facts()["written"] for part in self.parts)


class Assembly:
    """Writes a split's index files, remembers their checksums, and finishes the set."""

    def __init__(self, root: Path, to: ImageFormat) -> None:
        self._root, self._to = root, to
        self._sums: list[bytes] = []

    def split(self, parts: SplitParts) -> None:
        folder = f"{parts.split}/"
        (self._root / parts.split).mkdir(exist_ok=True)
        with self._file(folder + NAMES) as file:
            for part in parts.parts:
                copy_into(file.write, part.path("names"))
        with self._file(folder + SHARDS) as file:
            file.write(lines_of(_with_second_files(parts)))
            for part in parts.parts if not parts.shards else ():
                copy_into(file.write, part.shards())
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
                second += part.facts()["second_file"]
            first += len(rows)
            yield rows

    @contextmanager
    def _file(self, path: str) -> Iterator[ShardFile]:
        with whole_file(self._root / path) as raw:
            file = ShardFile(raw)
            yield file
            self._sums.append(checksum_line(file.finish(), path))

    def finish(self, dataset: ImageDataset, splits: Sequence[SplitParts]) -> None:
        """dataset.json comes last: a folder without it is unfinished."""
        content = dataset_bytes(dataset)
        with whole_file(self._root / CHECKSUMS) as file:
            for parts in splits:
                for part in parts.parts:
                    copy_into(file.write, part.path("sums"))
            file.writelines(self._sums)
            file.write(checksum_line(checksum(content), DATASET))
        write_whole(self._root / DATASET, content)


def _with_second_files(parts: SplitParts) -> list[str]:
    """The shards, and behind them the second files that some have."""
    pairs = zip(parts.shards, parts.parts, strict=False)
    return [*parts.shards, *(name + WHOLE for name, part in pairs if part.facts()["second_file"])]


def _list_lines(parts: SplitParts) -> Iterator[bytes]:
    prefix = f"{parts.split}/".encode()
    for part in parts.parts:
        with part.path("names").open("rb") as names:
            for name, label in zip(names, part.rows()["label"].tolist(), strict=True):
                yield prefix + name.rstrip(b"\n") + b" %d\n" % label


def _npy_head(count: int) -> bytes:
    """What numpy writes before an array of records."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": RECORD.descr, "fortran_order": False, "shape": (count,)}
    )
    return head.getvalue()


def write_picture(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def finish_folder_set(
    journal: Journal, classes: Sequence[str], keys: Mapping[str, Sequence[str]], about: Mapping[str, Any]
) -> int:
    """Index, checksums and at last dataset.json, all by name, from the records of each split.

    Return the bytes of all images.
    """
    root, total = journal.root, 0
    sums: dict[str, str] = {}
    counts = {}
    for split, records in ((split, list(map(journal.record, mine))) for split, mine in keys.items()):
        unsorted = [name for record in records for name in record.names()]
        order = sorted(range(len(unsorted)), key=unsorted.__getitem__)
        names = tuple(unsorted[place] for place in order)
        rows = np.concatenate([record.rows() for record in records])[order]
        rows["shard"] = np.arange(len(rows))
        (root / split).mkdir(exist_ok=True)
        for name, content in write_index(root / split, SplitIndex(rows, names, names)).items():
            sums[f"{split}/{name}"] = checksum(content)
        for record in records:
            sums.update((path, summed) for _, summed, path in read_checksums(record.path("sums")))
        counts[split] = len(names)
        total += int(rows["size"].sum(dtype="u8"))
    content = dataset_bytes(ImageDataset("folder", tuple(classes), counts, about))
    write_checksums(root, {**sums, DATASET: checksum(content)})
    write_whole(root / DATASET, content)
    journal.close()
    return total


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
