"""A set that somebody else made gets what ours have: index, names, checksums, dataset.json."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.base.wire import DamageError
from trainmark.data import checksums, formats
from trainmark.data.assemble import WHOLE, Assembly, ShardRecord, ShardRecorder, SplitParts
from trainmark.data.defects import NO_LABEL, UNREADABLE, PictureDefect
from trainmark.data.files import mapped_file, read_file, whole_file, write_whole
from trainmark.data.index import CHECKSUMS, DATASET, ImageDataset, dataset_bytes
from trainmark.data.journal import UNFINISHED_FOLDER
from trainmark.data.records import RecordOffset, Sharded, ShardFile
from trainmark.data.source import SourcePicture, open_source
from trainmark.data.verify import sharded_formats, shards_in
from trainmark.data.workers import in_parallel

LARGEST = (1 << 32) - 1


@dataclass(frozen=True)
class IndexJob:
    """A shard, or some pictures with their labels; paths are relative to the set's folder."""

    root: Path
    format: str
    split: str
    number: int
    journal: Path
    files: tuple[tuple[str, int], ...]
    shift: int = 0

    @property
    def shard_record(self) -> ShardRecord:
        return ShardRecord(self.journal, f"{self.split}-{self.number:05d}")


def index_shard(task: IndexJob) -> dict[int, str]:
    """Writes the rows into the journal; gives back what each label is called where the names tell."""
    form = formats.named(task.format)
    with ShardRecorder(task.shard_record) as recorder:
        if isinstance(form, Sharded):
            classes = _index_shard(task, form, recorder)
        else:
            classes = _index_files(task, recorder)
    return classes


def _index_shard(task: IndexJob, form: Sharded, recorder: ShardRecorder) -> dict[int, str]:
    path = task.root / task.files[0][0]
    classes: dict[int, str] = {}
    with ExitStack() as files, mapped_file(path) as data:

        def beside() -> ShardFile:
            return ShardFile(files.enter_context(whole_file(path.with_name(path.name + WHOLE))))

        second: ShardFile | None = None
        try:
            for record in form.scan(path):
                label = record.label + task.shift
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
    recorder.done("", recorder.count, second is not None)
    return classes


def _index_files(task: IndexJob, recorder: ShardRecorder) -> dict[int, str]:
    """Each is a shard of its own; its place is told relative to the split's folder."""
    folder = task.root / task.split
    with task.shard_record.path("shards").open("wb") as shards:
        for path, label in task.files:
            try:
                content = read_file(str(task.root / path), LARGEST) or b""
            except OSError as error:
                raise UserError(
                    f"{PictureDefect(path, (UNREADABLE,), note=error.strerror or '')}; remove it."
                ) from error
            size = len(content)
            recorder.add(
                path.removeprefix(f"{task.split}/"),
                label,
                RecordOffset(0, size, 0, size, zlib.crc32(content)),
                b"",
            )
            place = os.path.relpath(task.root / path, folder)
            shards.write(f"{place}\n".encode("utf-8", "surrogateescape"))
    recorder.done("", recorder.count, has_second=False)
    return {}


FILES_A_TASK = 1000
#: What the files of a split are called where both lie in one folder.
BEGINNINGS = {"train": "train", "val": "val", "validation": "val"}
#: The first label that others count from; Inception's 0 is the background.
LABELS_FROM = {"tfrecord": 1}


def index_set(
    root: Path,
    workers: int,
    labels_from: int | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
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
    root: Path, journal: Path, workers: int, labels_from: int | None, progress: Callable[[int, int], None]
) -> ImageDataset:
    tasks, classes = _shard_tasks(root, journal, labels_from), tuple[str, ...]()
    if not tasks:
        tasks, classes = _file_tasks(root, journal)
    named: dict[int, str] = {}
    for done, (_, label_names) in enumerate(
        in_parallel(index_shard, tasks, max(1, min(workers, len(tasks)))), 1
    ):
        named.update(label_names)
        progress(done, len(tasks))
    classes = classes or _class_names(named)
    splits = {task.split: [other for other in tasks if other.split == task.split] for task in tasks}
    form = formats.named(tasks[0].format)
    assembly = Assembly(root, form)
    counts = {}
    for split, mine in splits.items():
        for task in mine:
            _give_names(task, classes)
        _refuse_same_names(split, [task.shard_record for task in mine])
        parts = SplitParts(
            split, [task.shard_record for task in mine], _shard_paths(root, mine) if named else []
        )
        assembly.split(parts)
        counts[split] = parts.count
    dataset = ImageDataset(form.name, classes, counts, {"indexed": True, "labels_from": labels_from})
    shutil.rmtree(journal)
    _write_checksums(root, dataset, workers)
    write_whole(root / DATASET, dataset_bytes(dataset))
    return dataset


def _shard_tasks(root: Path, journal: Path, labels_from: int | None) -> list[IndexJob]:
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
                IndexJob(
                    root, form.name, split, number, journal, ((shard.relative_to(root).as_posix(), 0),), shift
                )
                for split, shards in shards_by_split.items()
                for number, shard in enumerate(shards)
            ]
    return []


def _file_tasks(root: Path, journal: Path) -> tuple[list[IndexJob], tuple[str, ...]]:
    shutil.rmtree(journal)  # or the set counts as unfinished
    source = open_source(root)
    journal.mkdir()
    tasks = []
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
        for number, first in enumerate(range(0, len(pictures), FILES_A_TASK)):
            files = tuple((one.path, one.label) for one in pictures[first : first + FILES_A_TASK])
            tasks.append(IndexJob(root, source.format, split, number, journal, files))
    return tasks, source.classes


def _class_names(named: dict[int, str]) -> tuple[str, ...]:
    """What the records call them, or their numbers, as wide as needed to be sorted."""
    labels = range(max(named, default=-1) + 1)
    names = [named.get(label, "") for label in labels]
    if all(names) and names == sorted(set(names)):
        return tuple(names)
    return tuple(f"{label:0{len(str(len(labels)))}d}" for label in labels)


def _shard_paths(root: Path, tasks: Sequence[IndexJob]) -> list[str]:
    return [os.path.relpath(root / task.files[0][0], root / task.split) for task in tasks]


def _give_names(task: IndexJob, classes: Sequence[str]) -> None:
    """A record whose format has no names is called by its class and its number."""
    path = task.shard_record.path("names")
    names = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]
    if all(names):
        return
    labels = task.shard_record.rows()["label"].tolist()
    made = (
        name or f"{classes[label]}/{task.split}_{task.number:05d}_{place:08d}.JPEG"
        for place, (name, label) in enumerate(zip(names, labels, strict=True))
    )
    path.write_bytes("".join(f"{name}\n" for name in made).encode("utf-8", "surrogateescape"))


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
    tasks = [(root, path) for path in paths if path not in (CHECKSUMS, DATASET)]
    sums = {
        path: checksum
        for (_, path), checksum in in_parallel(_sum, tasks, max(1, min(workers, len(tasks) // 2)))
    }
    sums[DATASET] = checksums.of_bytes(dataset_bytes(dataset))
    checksums.write_checksums(root, sums)


def _sum(task: tuple[Path, str]) -> str:
    return checksums.of_file(task[0] / task[1])
