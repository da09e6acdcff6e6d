"""A set that somebody else made gets what ours have: index, names, checksums, dataset.json."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.base.files import read_regular
from trainmark.base.wire import DamageError
from trainmark.data import formats
from trainmark.data.files import (
    CHECKSUMS,
    DATASET,
    ImageDataset,
    checksum,
    checksum_of,
    dataset_bytes,
    lines_of,
    mapped_file,
    whole_file,
    write_checksums,
    write_dataset,
)
from trainmark.data.jobs import Job, Progress, no_progress, results
from trainmark.data.journal import (
    UNFINISHED_FOLDER,
    WHOLE,
    Assembly,
    ShardRecord,
    ShardRecorder,
    SplitParts,
)
from trainmark.data.picture import NO_LABEL, UNREADABLE, PictureDefect
from trainmark.data.records import RecordOffset, Sharded, ShardFile
from trainmark.data.source import SourcePicture, numbered_classes, open_source
from trainmark.data.verify import sharded_formats, shards_in

LARGEST = (1 << 32) - 1


@dataclass(frozen=True)
class ForeignShard:
    """A shard, or some pictures with their labels; paths are relative to the set's folder."""

    root: Path
    format: str
    split: str
    number: int
    journal: Path
    files: tuple[tuple[str, int], ...]
    shift: int = 0

    @property
    def record(self) -> ShardRecord:
        return ShardRecord(self.journal, f"{self.split}-{self.number:05d}")


def index_shard(shard: ForeignShard) -> dict[int, str]:
    """Writes the rows into the journal; gives back what each label is called where the names tell."""
    form = formats.named(shard.format)
    with ShardRecorder(shard.record) as recorder:
        if isinstance(form, Sharded):
            return _index_shard(shard, form, recorder)
        _index_files(shard, recorder)
        return {}


def _index_shard(shard: ForeignShard, form: Sharded, recorder: ShardRecorder) -> dict[int, str]:
    path = shard.root / shard.files[0][0]
    classes: dict[int, str] = {}
    with ExitStack() as files, mapped_file(path) as data:

        def beside() -> ShardFile:
            return ShardFile(files.enter_context(whole_file(path.with_name(path.name + WHOLE))))

        second: ShardFile | None = None
        try:
            for record in form.scan(path):
                label = record.label + shard.shift
                if label < 0:
                    raise UserError(
                        f"{path}: {PictureDefect(record.name or 'a record', (NO_LABEL,))}; see --labels-from."
                    )
                classes[label] = record.name.rpartition("/")[0]
                crc = zlib.crc32(data[record.begin : record.begin + record.length])
                place = RecordOffset(record.begin, record.length, record.offset, record.size, crc)
                if record.offset < 0:
                    second = second or beside()
                    content = form.gather(path, record.begin)
                    place = place._replace(whole=second.add(content, 0, len(content)))
                recorder.add(record.name, label, place, b"")
        except DamageError as error:
            raise UserError(f"{path} is damaged: {error}; get it once more.") from error
    recorder.done(has_second=second is not None)
    return classes


def _index_files(shard: ForeignShard, recorder: ShardRecorder) -> None:
    """Each is a shard of its own; its place is told relative to the split's folder."""
    folder = shard.root / shard.split
    with shard.record.path("shards").open("wb") as places:
        for path, label in shard.files:
            try:
                content = read_regular(shard.root / path, LARGEST)
            except OSError as error:
                raise UserError(
                    f"{PictureDefect(path, (UNREADABLE,), note=error.strerror or '')}; remove it."
                ) from error
            size = len(content)
            recorder.add(
                path.removeprefix(f"{shard.split}/"),
                label,
                RecordOffset(0, size, 0, size, zlib.crc32(content)),
                b"",
            )
            places.write(lines_of([os.path.relpath(shard.root / path, folder)]))
    recorder.done()


FILES_OF_JOB = 1000
#: What the files of a split are called where both lie in one folder.
BEGINNINGS = {"train": "train", "val": "val", "validation": "val"}
#: The first label that others count from; Inception's 0 is the background.
LABELS_FROM = {"tfrecord": 1}


def index_set(
    root: Path,
    workers: int,
    labels_from: int | None,
    progress: Progress = no_progress,
) -> ImageDataset:
    if not root.is_dir():
        raise UserError(f"{root} is no folder; name the folder of a set.")
    if (root / DATASET).exists():
        raise UserError(f"{root} is a set already; `trainmark data verify {root}` checks it.")
    journal = root / UNFINISHED_FOLDER
    if (journal / "plan.json").exists():
        raise UserError(f"{root} is unfinished; give the command that began it once more, and it goes on.")
    shutil.rmtree(journal, ignore_errors=True)
    journal.mkdir()
    try:
        return _indexed(root, journal, workers, labels_from, progress)
    finally:
        shutil.rmtree(journal, ignore_errors=True)


def _indexed(
    root: Path, journal: Path, workers: int, labels_from: int | None, progress: Progress
) -> ImageDataset:
    shards, classes = _foreign_shards(root, journal, labels_from), tuple[str, ...]()
    if not shards:
        shards, classes = _foreign_files(root, journal)
    named: dict[int, str] = {}
    for _, label_names in results([Job(index_shard, (shard,)) for shard in shards], workers, progress):
        named.update(label_names)
    classes = classes or numbered_classes(named)
    form = formats.named(shards[0].format)
    assembly = Assembly(root, form)
    counts = {}
    for split in dict.fromkeys(shard.split for shard in shards):
        mine = [shard for shard in shards if shard.split == split]
        for shard in mine:
            _give_names(shard, classes)
        _refuse_same_names(split, [shard.record for shard in mine])
        places = [os.path.relpath(root / shard.files[0][0], root / split) for shard in mine]
        parts = SplitParts(split, [shard.record for shard in mine], places if named else [])
        assembly.split(parts)
        counts[split] = parts.count
    dataset = ImageDataset(form.name, classes, counts, {"indexed": True, "labels_from": labels_from})
    shutil.rmtree(journal)
    _write_checksums(root, dataset, workers)
    write_dataset(root, dataset)
    return dataset


def _foreign_shards(root: Path, journal: Path, labels_from: int | None) -> list[ForeignShard]:
    """The shards of the first format that there are any of, split by split."""
    for form in sharded_formats():
        shards_by_split: dict[str, list[Path]] = {"train": [], "val": []}
        for folder, split in BEGINNINGS.items():
            shards_by_split[split] += shards_in(root / folder, form)
        if not any(shards_by_split.values()):
            for shard in shards_in(root, form):
                beginning = next(
                    (split for name, split in BEGINNINGS.items() if shard.name.startswith(name)), "train"
                )
                shards_by_split[beginning].append(shard)
        if any(shards_by_split.values()):
            standard = LABELS_FROM.get(form.name, 0)
            shift = 0 if labels_from is None else standard - labels_from
            return [
                ForeignShard(
                    root, form.name, split, number, journal, ((shard.relative_to(root).as_posix(), 0),), shift
                )
                for split, shards in shards_by_split.items()
                for number, shard in enumerate(shards)
            ]
    return []


def _foreign_files(root: Path, journal: Path) -> tuple[list[ForeignShard], tuple[str, ...]]:
    shutil.rmtree(journal)  # or the set counts as unfinished
    source = open_source(root)
    journal.mkdir()
    shards = []
    for split in source.folders:
        listed = list(source.pictures(split))
        bad = [entry for entry in listed if isinstance(entry, PictureDefect) and not entry.tolerated]
        pictures = [entry for entry in listed if isinstance(entry, SourcePicture)]
        bad += [
            PictureDefect(one.path, (NO_LABEL,))
            for one in pictures
            if not 0 <= one.label < len(source.classes)
        ]
        if bad:
            raise UserError(f"{bad[0]}; mend or remove it ({len(bad)} in all).")
        for number, first in enumerate(range(0, len(pictures), FILES_OF_JOB)):
            files = tuple((one.path, one.label) for one in pictures[first : first + FILES_OF_JOB])
            shards.append(ForeignShard(root, source.format, split, number, journal, files))
    return shards, source.classes


def _give_names(shard: ForeignShard, classes: Sequence[str]) -> None:
    """A record whose format has no names is called by its class and its number."""
    names = shard.record.names()
    if all(names):
        return
    labels = shard.record.rows()["label"].tolist()
    made = (
        name or f"{classes[label]}/{shard.split}_{shard.number:05d}_{place:08d}.JPEG"
        for place, (name, label) in enumerate(zip(names, labels, strict=True))
    )
    shard.record.path("names").write_bytes(lines_of(made))


def _refuse_same_names(split: str, parts: Sequence[ShardRecord]) -> None:
    seen: set[bytes] = set()
    for part in parts:
        with part.path("names").open("rb") as names:
            for name in names:
                if name in seen:
                    text = name.decode("utf-8", "replace").strip()
                    raise UserError(
                        f"{split} has two records named {text}; a set tells them apart by their names."
                    )
                seen.add(name)


def _write_checksums(root: Path, dataset: ImageDataset, workers: int) -> None:
    """Of every file there is, also of those that are none of ours."""
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    jobs = [Job(checksum_of, (root / path,), 1, path) for path in paths if path not in (CHECKSUMS, DATASET)]
    sums = {job.key: summed for job, summed in results(jobs, min(workers, len(jobs) // 2))}
    write_checksums(root, {**sums, DATASET: checksum(dataset_bytes(dataset))})
