"""A set against its checksums, or against what its format says of itself; and every picture of it decoded."""

from __future__ import annotations

import io
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.base.files import read_regular
from trainmark.base.wire import DamageError
from trainmark.data import formats
from trainmark.data.files import (
    CHECKSUMS,
    DATASET,
    INDEX,
    NAMES,
    RECORD,
    SHARDS,
    Shards,
    checksum_of,
    open_descriptor,
    read_checksums,
    read_dataset,
    read_index,
    read_lines,
)
from trainmark.data.jobs import Job, Progress, no_progress, results
from trainmark.data.journal import UNFINISHED_FOLDER
from trainmark.data.picture import PICTURE_DEFECTS, TOLERATED_DEFECTS, picture_defects
from trainmark.data.records import Sharded
from trainmark.data.source import SourcePicture, open_source

MISSING, EXTRA, SHORT, DIFFERS = "missing", "extra", "short", "differs"
UNFINISHED, STRUCTURE, PICTURE, UNREADABLE_FILE = "unfinished", "structure", "picture", "unreadable"
MOST_NAMED = 20


class SetFinding(NamedTuple):
    """What is wrong with a file; `records` are the names of the damaged ones, the sentence has the first."""

    file: str
    kind: str
    what: str
    records: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.records:
            return f"{self.file}: {self.what}"
        more = f" and {len(self.records) - MOST_NAMED:,} more" if len(self.records) > MOST_NAMED else ""
        return f"{self.file}: {self.what}: {', '.join(self.records[:MOST_NAMED])}{more}"


@dataclass(frozen=True)
class SetVerdict:
    """`by` says what the files were held against: their checksums, or the rules of a format.

    Of tokens: their format, how many `unit` (tokens or sequences) a split has, and the largest id.
    """

    by: str
    files: int
    records: int
    findings: tuple[SetFinding, ...]
    format: str = ""
    unit: str = "records"
    splits: dict[str, int] = field(default_factory=dict)
    largest: int = -1

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(root: Path, workers: int, decoded: bool, progress: Progress = no_progress) -> SetVerdict:
    if not root.exists():
        raise UserError(f"{root} does not exist; name the folder of a set.")
    if not any((root / name).exists() for name in (DATASET, CHECKSUMS, UNFINISHED_FOLDER)):
        return _by_structure(root, workers, progress)
    listed, findings = listed_checksums(root)
    findings += extra_files(root, listed)
    splits = tuple(sorted(path.name for path in root.iterdir() if path.is_dir()))
    jobs = [Job(verify_files, (root, splits, files), len(files)) for files in _batches(root, listed)]
    for _, damaged in results(jobs, workers, progress):
        findings += damaged
    records = 0
    try:
        counts = read_dataset(root).splits
        records = sum(counts.values())
        decoding = [
            Job(decode_pictures, (root / split, first, min(first + RECORDS_OF_JOB, count)))
            for split, count in counts.items()
            for first in range(0, count, RECORDS_OF_JOB)
        ]
        for _, undecoded in results(decoding, workers) if decoded else ():
            findings += undecoded
    except UserError as error:
        findings.append(SetFinding(DATASET, UNFINISHED, str(error)))
    return SetVerdict("checksums", len(listed), records, tuple(sorted(findings)))


def listed_checksums(root: Path) -> tuple[dict[str, str], list[SetFinding]]:
    """What checksums.txt lists by path, and what is wrong with the list itself."""
    listed: dict[str, str] = {}
    findings = []
    try:
        for number, checksum, path in read_checksums(root / CHECKSUMS):
            if not checksum:
                findings.append(SetFinding(CHECKSUMS, DIFFERS, f"line {number} is no checksum of a file"))
            elif path in listed:
                findings.append(SetFinding(CHECKSUMS, DIFFERS, f"line {number} lists {path} a second time"))
            else:
                listed[path] = checksum
    except FileNotFoundError:
        findings.append(SetFinding(CHECKSUMS, MISSING, "is missing; nothing can be compared"))
    return listed, findings


def extra_files(root: Path, listed: dict[str, str]) -> list[SetFinding]:
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    return [
        SetFinding(path, EXTRA, f"is not listed in {CHECKSUMS}")
        for path in sorted(there - {*listed, CHECKSUMS})
    ]


BATCH_BYTES, BATCH_FILES = 64 << 20, 1000
RECORDS_OF_JOB = 2000


def _batches(root: Path, listed: dict[str, str]) -> Iterator[list[tuple[str, str]]]:
    """Small files together, so that a job has some work to do."""
    batch: list[tuple[str, str]] = []
    size = 0
    for path, checksum in listed.items():
        batch.append((path, checksum))
        if (root / path).is_file():
            size += (root / path).stat().st_size
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def verify_files(root: Path, splits: Sequence[str], files: Sequence[tuple[str, str]]) -> list[SetFinding]:
    """What is wrong with these files, which should have these checksums."""
    findings = []
    for path, checksum in files:
        try:
            if checksum_of(root / path) != checksum:
                findings.append(_damage(root, splits, path))
        except FileNotFoundError:
            findings.append(SetFinding(path, MISSING, "is missing"))
        except OSError as error:
            findings.append(SetFinding(path, UNREADABLE_FILE, f"cannot be read ({error.strerror})"))
    return findings


def _damage(root: Path, splits: Sequence[str], path: str) -> SetFinding:
    """Which records of a file that differs are damaged, as far as the index can tell."""
    split = next((split for split in splits if path.startswith(f"{split}/")), None)
    if path.endswith((INDEX, SHARDS, NAMES)) or split is None:
        return SetFinding(path, DIFFERS, "differs from its checksum")
    try:  # the index may be damaged itself
        rows = np.load(root / split / INDEX, mmap_mode="r", allow_pickle=False)
        shards, names = (read_lines(root / split / name) for name in (SHARDS, NAMES))
    except (OSError, ValueError, EOFError, SyntaxError):
        rows = None
    if rows is None or rows.dtype != RECORD or rows.ndim != 1:
        return SetFinding(path, DIFFERS, "differs; the index is damaged too, so that no record can be named")
    if path.removeprefix(f"{split}/") not in shards:
        return SetFinding(path, DIFFERS, "differs from its checksum; it holds no record")
    mine = np.flatnonzero(rows["shard"] == shards.index(path.removeprefix(f"{split}/")))
    damaged = _damaged(root / path, rows, mine)
    named = tuple(names[place] if place < len(names) else f"record {place}" for place in damaged)
    size = (root / path).stat().st_size
    if size < int((rows["begin"][mine] + rows["length"][mine]).max(initial=0)):
        return SetFinding(
            path, SHORT, f"ends at byte {size:,}, before its last record ends; damaged are", named
        )
    if not named:
        return SetFinding(path, DIFFERS, "differs outside every record")
    return SetFinding(path, DIFFERS, "has damaged records", named)


def _damaged(file: Path, rows: npt.NDArray[np.void], mine: npt.NDArray[np.intp]) -> list[int]:
    damaged = []
    with open_descriptor(file) as descriptor:
        for place in mine.tolist():
            row = rows[place]
            content = os.pread(descriptor, int(row["length"]), int(row["begin"]))
            if len(content) < row["length"] or zlib.crc32(content) != row["crc"]:
                damaged.append(place)
    return damaged


def decode_pictures(folder: Path, first: int, last: int) -> list[SetFinding]:
    from PIL import Image

    try:
        index = read_index(folder)
    except UserError as error:
        return [SetFinding(folder.name, PICTURE, str(error))]
    shards = Shards(folder, index.shards)
    findings = []
    for row, name in zip(index.rows[first:last], index.names[first:last], strict=True):
        try:
            content = shards.read(int(row["shard"]), int(row["offset"]), int(row["size"]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large pictures and odd metadata
                with Image.open(io.BytesIO(content)) as picture:
                    picture.load()
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            what = f"cannot be decoded ({' '.join(str(error).split())[:80]})"
            findings.append(SetFinding(f"{folder.name}/{name}", PICTURE, what))
    shards.close()
    return findings


#: Index files that lie beside shards and have their name in them.
SIDE_ENDINGS = (".idx", ".lst", ".db", ".whole", ".part")
FOLDER_FILES = 1000
LARGEST_PICTURE = 1 << 32


def _by_structure(root: Path, workers: int, progress: Progress) -> SetVerdict:
    jobs = list(_structure_jobs(root))
    if not jobs:
        raise UserError(f"{root} holds nothing that is known as a set; see `trainmark data convert --help`.")
    findings: list[SetFinding] = []
    records = 0
    for _, (count, damaged) in results(jobs, workers, progress):
        findings += damaged
        records += count
    return SetVerdict(f"the rules of {jobs[0].arguments[1]}", len(jobs), records, tuple(sorted(findings)))


def _structure_jobs(root: Path) -> Iterator[Job[tuple[int, list[SetFinding]]]]:
    """What there is to look at in a folder that somebody else made, or in one file."""
    if root.is_file():
        form = next((form for form in sharded_formats() if root in shards_in(root.parent, form)), None)
        if form:
            yield Job(check_shard, (root.parent, form.name, root.name))
        return
    folders = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    for form in sharded_formats():
        if shards := [shard for folder in folders for shard in shards_in(folder, form)]:
            names = (shard.relative_to(root).as_posix() for shard in shards)
            yield from (Job(check_shard, (root, form.name, name)) for name in names)
            return
    try:
        source = open_source(root)
    except UserError:
        return
    for split in source.folders:
        paths = [entry.path for entry in source.pictures(split) if isinstance(entry, SourcePicture)]
        for first in range(0, len(paths), FOLDER_FILES):
            yield Job(check_pictures, (root, source.format, paths[first : first + FOLDER_FILES]))


def shards_in(folder: Path, form: Sharded) -> list[Path]:
    """Files that look like shards of this format, in order."""
    paths = {path for pattern in form.patterns for path in folder.glob(pattern)}
    return sorted(path for path in paths if path.is_file() and not path.name.endswith(SIDE_ENDINGS))


def sharded_formats() -> list[Sharded]:
    known = (formats.named(name) for name in formats.names())
    return [form for form in known if isinstance(form, Sharded)]


def check_shard(root: Path, format: str, name: str) -> tuple[int, list[SetFinding]]:
    """How many records there are, and what is wrong."""
    form = formats.named(format)
    assert isinstance(form, Sharded)
    count = 0
    try:
        for _ in form.scan(root / name):
            count += 1
    except DamageError as error:
        return count, [SetFinding(name, STRUCTURE, f"{error}, behind {count:,} records")]
    except OSError as error:
        return count, [SetFinding(name, UNREADABLE_FILE, f"cannot be read ({error.strerror})")]
    return count, []


def check_pictures(root: Path, format: str, paths: Sequence[str]) -> tuple[int, list[SetFinding]]:
    """The same of pictures that are files of their own."""
    findings = []
    for path in paths:
        try:
            codes = picture_defects(read_regular(root / path, LARGEST_PICTURE))
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            findings.append(SetFinding(Path(path).name, UNREADABLE_FILE, what))
            continue
        if what := " and ".join(PICTURE_DEFECTS[code] for code in codes if code not in TOLERATED_DEFECTS):
            findings.append(SetFinding(Path(path).name, PICTURE, what))
    return len(paths), findings
