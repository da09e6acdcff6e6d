"""One shard: its pictures are read, looked at, written, and remembered. Runs in a process of its own."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.data import checksums, formats, listing, picture
from trainmark.data.assemble import WHOLE, ShardRecord, ShardRecorder
from trainmark.data.defects import (
    MISLABELLED,
    NAME,
    NO_FILE,
    NO_LABEL,
    TOO_LARGE,
    UNREADABLE,
    PictureDefect,
)
from trainmark.data.files import NoFileError, Shards, part_of, read_file, write_whole
from trainmark.data.headers import PictureHeader
from trainmark.data.index import read_index
from trainmark.data.records import ImageFormat, ImageRecord, RecordOffset, Sharded, ShardFile, ShardPlan
from trainmark.data.source import ImageSource
from trainmark.data.workers import TaskCounter

BUFFER = 1 << 20


@dataclass(frozen=True)
class ConvertJob:
    """Shard `number` of `total`, made of the listed pictures `first` up to `last`."""

    source: ImageSource
    split: str
    to: str
    target: Path
    journal: Path
    number: int
    total: int
    first: int
    last: int
    largest: int
    keep: frozenset[str]
    on_bad: str
    slot: int
    left_out: frozenset[str] = frozenset()

    @property
    def shard_record(self) -> ShardRecord:
        return ShardRecord(self.journal, f"{self.split}-{self.number:05d}")

    @property
    def folder(self) -> Path:
        return self.target / self.split

    def shard_name(self) -> str | None:
        to = formats.named(self.to)
        return to.shard_name(self.split, self.number, self.total) if isinstance(to, Sharded) else None


def convert_shard(task: ConvertJob) -> int:
    """Writes it, unless it is there already; gives back how many pictures it was to hold."""
    listed = task.journal / task.split
    digest = f"{listing.listing_digest(listed, task.first, task.last)} {sorted(task.left_out)}"
    pictures_in_shard = task.last - task.first
    with contextlib.closing(TaskCounter(task.journal, task.slot)) as counter:
        if task.shard_record.is_whole(digest, task.target):
            counter.finish(pictures_in_shard)
            return pictures_in_shard
        task.folder.mkdir(parents=True, exist_ok=True)
        with (
            ShardRecorder(task.shard_record) as recorder,
            contextlib.closing(JobRecords(task, recorder, counter)) as pictures,
        ):
            to = formats.named(task.to)
            if isinstance(to, Sharded):
                _write_shard(to, task, pictures, recorder, digest)
            else:
                for record in pictures:
                    _write_file(task, record, Path(pictures.path), recorder)
                recorder.done(digest, pictures_in_shard, has_second=False)
    return pictures_in_shard


class JobRecords:
    """The records of a task; those that are bad are told to the journal, or end the task."""

    def __init__(self, task: ConvertJob, recorder: ShardRecorder, counter: TaskCounter) -> None:
        self._task, self._recorder, self._counter = task, recorder, counter
        self._to: ImageFormat = formats.named(task.to)
        self._shards: Shards | None = None
        if not task.source.loose:
            folder = task.source.folders[task.split]
            self._shards = Shards(folder, read_index(folder).shards)
        self.last: ImageRecord
        self.path = ""

    def __iter__(self) -> Iterator[ImageRecord]:
        task = self._task
        for entry in listing.read_listing(task.journal / task.split, task.first, task.last):
            name = task.source.name(task.split, entry.path)
            content, codes, note = self._read(entry, name)
            header = picture.picture_header(content)
            if not codes and not _plain(header):
                codes = picture.picture_defects(content)
            if codes:
                tolerated = task.keep.issuperset(codes) and self._to.unfit.isdisjoint(codes)
                trouble = PictureDefect(f"{task.split}/{name}", tuple(codes), tolerated, note)
                if not tolerated and task.on_bad == "stop":
                    raise UserError(f"{trouble}; mend or remove it, or give --on-bad skip.")
                self._recorder.troubles.append(trouble)
            self._counter.add(1)
            if not codes or tolerated:
                self.last = ImageRecord(
                    name,
                    entry.label,
                    entry.number,
                    content,
                    header.format,
                    header.width,
                    header.height,
                    header.components,
                )
                self.path = f"{task.source.root}/{entry.path}"
                yield self.last

    def _read(self, entry: listing.ListedPicture, name: str) -> tuple[bytes, list[str], str]:
        """The bytes, and what is wrong before one has looked at them."""
        if not 0 <= entry.label < len(self._task.source.classes):
            return b"", [NO_LABEL], ""
        if any(mark in name for mark in self._to.forbidden) or not _stays_inside(name):
            return b"", [NAME], ""
        if f"{self._task.split}/{name}" in self._task.left_out:
            return b"", [MISLABELLED], ""
        try:
            if self._shards is not None:
                content: bytes | None = self._shards.read(entry.shard, entry.offset, entry.size)
            else:
                content = read_file(f"{self._task.source.root}/{entry.path}", self._to.largest)
        except NoFileError:
            return b"", [NO_FILE], ""
        except (OSError, ValueError) as error:
            return b"", [UNREADABLE], getattr(error, "strerror", None) or str(error)
        return (
            (b"", [TOO_LARGE], "")
            if content is None or len(content) > self._to.largest
            else (content, [], "")
        )

    def close(self) -> None:
        if self._shards is not None:
            self._shards.close()


def _plain(header: PictureHeader) -> bool:
    """Nothing odd at all, as almost all pictures are: one need not look closer."""
    one = header.format == "jpeg" and header.whole and header.frames == 1
    return one and header.bits == 8 and not header.cmyk and header.width > 1 and header.height > 1


def _stays_inside(name: str) -> bool:
    """A name must not lead out of the set's folder."""
    return not name.startswith("/") and ".." not in name.split("/") and "\0" not in name


def _write_shard(
    to: Sharded, task: ConvertJob, pictures: JobRecords, recorder: ShardRecorder, digest: str
) -> None:
    name = to.shard_name(task.split, task.number, task.total)
    parts: dict[str, Path] = {}
    try:
        with contextlib.ExitStack() as files:

            def opened(file_name: str) -> ShardFile:
                parts[file_name] = part_of(task.folder / file_name)
                file = files.enter_context(parts[file_name].open("w+b", buffering=BUFFER))
                return ShardFile(file, lambda: opened(name + WHOLE))

            shard = ShardPlan(task.split, task.number, task.total, task.last - task.first, task.largest)
            written = {name: opened(name)}
            sides = [(side, opened(side)) for side in to.side_names(name)]
            for place in to.write(written[name], pictures, shard):
                record = pictures.last
                recorder.add(record.name, record.label, place, record.data)
                for (_, side), line in zip(sides, to.side_lines(record, place), strict=True):
                    side.write(line.encode("utf-8", "surrogateescape"))
            if second := written[name].beside:
                written[name + WHOLE] = second
            for file_name, file in [*written.items(), *sides]:
                recorder.add_file(file.finish(), f"{task.split}/{file_name}")
        for file_name, part in to.finish(name, parts[name]).items():
            parts[file_name] = part
            recorder.add_file(checksums.of_file(part), f"{task.split}/{file_name}")
        recorder.done(digest, task.last - task.first, name + WHOLE in parts)
        for file_name, part in parts.items():
            part.replace(task.folder / file_name)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _write_file(task: ConvertJob, record: ImageRecord, source: Path, recorder: ShardRecorder) -> None:
    """A hard link where the file system has them and source and target share it, else a copy."""
    path = task.folder / record.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (task.source.loose and _linked(source, path)):
        write_whole(path, record.data)
    crc, size = zlib.crc32(record.data), len(record.data)
    recorder.add(record.name, record.label, RecordOffset(0, size, 0, size, crc), record.data)
    recorder.add_file(checksums.of_bytes(record.data), f"{task.split}/{record.name}")


def _linked(source: Path, path: Path) -> bool:
    try:
        if source.is_symlink():
            return False
        path.unlink(missing_ok=True)
        os.link(source, path)
    except OSError:
        return False
    return True
