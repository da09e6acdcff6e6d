"""A set against its checksums, or against what its format says of itself; and every picture of it decoded."""

from __future__ import annotations

import io
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.base.wire import DamageError
from trainmark.data import checksums, formats, picture
from trainmark.data.defects import (
    DIFFERS,
    EXTRA,
    MISSING,
    PICTURE,
    SHORT,
    STRUCTURE,
    UNFINISHED,
    UNREADABLE_FILE,
    SetFinding,
)
from trainmark.data.files import Shards, read_file
from trainmark.data.index import (
    CHECKSUMS,
    DATASET,
    INDEX,
    NAMES,
    RECORD,
    SHARDS,
    ImageDataset,
    read_dataset,
    read_index,
)
from trainmark.data.journal import UNFINISHED_FOLDER as UNFINISHED_FOLDER
from trainmark.data.records import Sharded
from trainmark.data.source import SourcePicture, open_source
from trainmark.data.workers import in_parallel


@dataclass(frozen=True)
class ChecksumJob:
    """Some files of the set with the checksums they should have."""

    root: Path
    splits: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


def verify_files(task: ChecksumJob) -> list[SetFinding]:
    findings = (_verify(task, path, checksum) for path, checksum in task.files)
    return [finding for finding in findings if finding is not None]


def _verify(task: ChecksumJob, path: str, checksum: str) -> SetFinding | None:
    file = task.root / path
    try:
        if checksums.of_file(file) == checksum:
            return None
        return _damage(task, path, file)
    except FileNotFoundError:
        return SetFinding(path, MISSING, "is missing")
    except OSError as error:
        return SetFinding(path, UNREADABLE_FILE, f"cannot be read ({error.strerror})")


def _damage(task: ChecksumJob, path: str, file: Path) -> SetFinding:
    """Which records of a file that differs are damaged, as far as the index can tell."""
    split = next((split for split in task.splits if path.startswith(f"{split}/")), None)
    if path.endswith((INDEX, SHARDS, NAMES)) or split is None:
        return SetFinding(path, DIFFERS, "differs from its checksum")
    split_index = _index(task.root / split)
    if split_index is None:
        return SetFinding(path, DIFFERS, "differs; the index is damaged too, so that no record can be named")
    rows, shards, names = split_index
    try:
        number = shards.index(path.removeprefix(f"{split}/"))
    except ValueError:
        return SetFinding(path, DIFFERS, "differs from its checksum; it holds no record")
    mine = np.flatnonzero(rows["shard"] == number)
    size = file.stat().st_size
    ends = int((rows["begin"][mine] + rows["length"][mine]).max(initial=0))
    damaged = _damaged(file, rows, mine)
    named = tuple(names[place] if place < len(names) else f"record {place}" for place in damaged)
    if size < ends:
        return SetFinding(
            path, SHORT, f"ends at byte {size:,}, before its last record ends; damaged are", named
        )
    if not named:
        return SetFinding(path, DIFFERS, "differs outside every record")
    return SetFinding(path, DIFFERS, "has damaged records", named)


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


#: Index files that lie beside shards and have their name in them.
SIDE_ENDINGS = (".idx", ".lst", ".db", ".whole", ".part")
FOLDER_FILES = 1000


@dataclass(frozen=True)
class StructureJob:
    """A shard, or some pictures that are files of their own."""

    root: Path
    format: str
    files: tuple[str, ...]


def shards_in(folder: Path, form: Sharded) -> list[Path]:
    """Files that look like shards of this format, in order."""
    paths = {path for pattern in form.patterns for path in folder.glob(pattern)}
    return sorted(path for path in paths if path.is_file() and not path.name.endswith(SIDE_ENDINGS))


def shards_of(root: Path) -> Iterator[StructureJob]:
    """What there is to look at in a folder that somebody else made, or in one file."""
    if root.is_file():
        for form in sharded_formats():
            if root in shards_in(root.parent, form):
                yield StructureJob(root.parent, form.name, (root.name,))
                return
        return
    folders = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    for form in sharded_formats():
        shards = [shard for folder in folders for shard in shards_in(folder, form)]
        yield from (StructureJob(root, form.name, (shard.relative_to(root).as_posix(),)) for shard in shards)
        if shards:
            return
    try:
        source = open_source(root)
    except UserError:
        return
    for split in source.folders:
        paths = [entry.path for entry in source.pictures(split) if isinstance(entry, SourcePicture)]
        for first in range(0, len(paths), FOLDER_FILES):
            yield StructureJob(root, source.format, tuple(paths[first : first + FOLDER_FILES]))


def sharded_formats() -> list[Sharded]:
    known = (formats.named(name) for name in formats.names())
    return [form for form in known if isinstance(form, Sharded)]


def check_structure(task: StructureJob) -> tuple[int, list[SetFinding]]:
    """How many records there are, and what is wrong."""
    form = formats.named(task.format)
    if isinstance(form, Sharded):
        return _check_shard(task.root / task.files[0], task.files[0], form)
    checked = [(path, _problems(task.root / path)) for path in task.files]
    return len(task.files), [finding for _, finding in checked if finding is not None]


def _check_shard(path: Path, name: str, form: Sharded) -> tuple[int, list[SetFinding]]:
    count = 0
    try:
        for _ in form.scan(path):
            count += 1
    except DamageError as error:
        return count, [SetFinding(name, STRUCTURE, f"{error}, behind {count:,} records")]
    except OSError as error:
        return count, [SetFinding(name, UNREADABLE_FILE, f"cannot be read ({error.strerror})")]
    return count, []


def _problems(path: Path) -> SetFinding | None:
    try:
        codes = [
            code
            for code in picture.picture_defects(read_file(str(path), 1 << 32) or b"")
            if code not in picture.TOLERATED_DEFECTS
        ]
    except OSError as error:
        return SetFinding(path.name, UNREADABLE_FILE, f"cannot be read ({error.strerror})")
    what = " and ".join(picture.PICTURE_DEFECTS[code] for code in codes)
    return SetFinding(path.name, PICTURE, what) if codes else None


RECORDS = 2000


@dataclass(frozen=True)
class DecodeJob:
    folder: Path
    first: int
    last: int


def decode_all(root: Path, dataset: ImageDataset, workers: int) -> list[SetFinding]:
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise UserError("--decode needs Pillow; pip install pillow.") from error
    tasks = [
        DecodeJob(root / split, first, min(first + RECORDS, count))
        for split, count in dataset.splits.items()
        for first in range(0, count, RECORDS)
    ]
    results = in_parallel(decode_some, tasks, max(1, min(workers, len(tasks))))
    return [finding for _, findings in results for finding in findings]


def decode_some(task: DecodeJob) -> list[SetFinding]:
    from PIL import Image

    try:
        index = read_index(task.folder)
    except UserError as error:
        return [SetFinding(task.folder.name, PICTURE, str(error))]
    shards = Shards(task.folder, index.shards)
    findings = []
    for row, name in zip(
        index.rows[task.first : task.last], index.names[task.first : task.last], strict=True
    ):
        try:
            content = shards.read(int(row["shard"]), int(row["offset"]), int(row["size"]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large pictures and odd metadata
                with Image.open(io.BytesIO(content)) as picture:
                    picture.load()
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            what = f"cannot be decoded ({' '.join(str(error).split())[:80]})"
            findings.append(SetFinding(f"{task.folder.name}/{name}", PICTURE, what))
    shards.close()
    return findings


Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class SetVerdict:
    """`by` says what the files were held against: their checksums, or the rules of a format."""

    by: str
    files: int
    records: int
    findings: tuple[SetFinding, ...]

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(
    root: Path, workers: int, decoded: bool, progress: Progress = lambda done, total: None
) -> SetVerdict:
    if not root.exists():
        raise UserError(f"{root} does not exist; name the folder of a set.")
    if not any((root / name).exists() for name in (DATASET, CHECKSUMS, UNFINISHED_FOLDER)):
        return _by_structure(root, workers, progress)
    listed, findings = _listed(root)
    findings += _extra(root, {path for path, _ in listed})
    splits = tuple(sorted(path.name for path in root.iterdir() if path.is_dir()))
    tasks = [ChecksumJob(root, splits, files) for files in batches(root, listed)]
    done = 0
    for task, task_findings in in_parallel(verify_files, tasks, max(1, min(workers, len(tasks)))):
        findings += task_findings
        done += len(task.files)
        progress(done, len(listed))
    records = 0
    try:
        dataset = read_dataset(root)
        records = sum(dataset.splits.values())
        if decoded:
            findings += decode_all(root, dataset, workers)
    except UserError as error:
        findings.append(SetFinding(DATASET, UNFINISHED, str(error)))
    return SetVerdict("checksums", len(listed), records, tuple(sorted(findings)))


def _listed(root: Path) -> tuple[list[tuple[str, str]], list[SetFinding]]:
    """What checksums.txt lists, and what is wrong with the list itself."""
    listed, findings, seen = [], [], set[str]()
    try:
        for number, checksum, path in checksums.read(root):
            if not checksum:
                findings.append(SetFinding(CHECKSUMS, DIFFERS, f"line {number} is no checksum of a file"))
            elif path in seen:
                findings.append(SetFinding(CHECKSUMS, DIFFERS, f"line {number} lists {path} a second time"))
            else:
                seen.add(path)
                listed.append((path, checksum))
    except FileNotFoundError:
        findings.append(SetFinding(CHECKSUMS, MISSING, "is missing; nothing can be compared"))
    return listed, findings


def _extra(root: Path, listed: set[str]) -> list[SetFinding]:
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    return [
        SetFinding(path, EXTRA, f"is not listed in {CHECKSUMS}")
        for path in sorted(paths)
        if path not in listed and path != CHECKSUMS
    ]


def _by_structure(root: Path, workers: int, progress: Progress) -> SetVerdict:
    tasks = list(shards_of(root))
    if not tasks:
        raise UserError(f"{root} holds nothing that is known as a set; see `trainmark data convert --help`.")
    findings: list[SetFinding] = []
    records = 0
    for number, (_, (count, task_findings)) in enumerate(
        in_parallel(check_structure, tasks, max(1, min(workers, len(tasks)))), 1
    ):
        findings += task_findings
        records += count
        progress(number, len(tasks))
    return SetVerdict(f"the rules of {tasks[0].format}", len(tasks), records, tuple(sorted(findings)))
