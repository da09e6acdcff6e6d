"""One shard: its pictures are read, looked at, written, and remembered. Runs in a process of its own."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.base.files import read_regular
from trainmark.data import formats, jobs
from trainmark.data.files import Shards, checksum_of, part_of, read_index, write_whole
from trainmark.data.journal import WHOLE, ShardRecord, ShardRecorder
from trainmark.data.picture import (
    MISLABELLED,
    NAME,
    NO_FILE,
    NO_LABEL,
    TOO_LARGE,
    UNREADABLE,
    PictureDefect,
    picture_defects,
    picture_header,
)
from trainmark.data.records import ImageRecord, Sharded, ShardFile, ShardPlan
from trainmark.data.source import ImageSource, ListedPicture, listing_digest, read_listing

BUFFER = 1 << 20
UNREADABLE_CODES = {errno.EINVAL: NO_FILE, errno.EFBIG: TOO_LARGE}  # what `read_regular` refuses


@dataclass(frozen=True)
class TargetShard(ShardPlan):
    """A shard of the listed pictures from `first` on, or so many pictures that are files of their own."""

    source: ImageSource
    to: str
    target: Path
    journal: Path
    first: int
    keep: frozenset[str]
    on_bad: str
    left_out: frozenset[str] = frozenset()

    @property
    def last(self) -> int:
        return self.first + self.records

    @property
    def record(self) -> ShardRecord:
        return ShardRecord(self.journal, f"{self.split}-{self.number:05d}")

    @property
    def folder(self) -> Path:
        return self.target / self.split

    @property
    def name(self) -> str:
        """Of its file; none where the pictures are files."""
        to = formats.named(self.to)
        return to.shard_name(self.split, self.number, self.total) if isinstance(to, Sharded) else ""


def convert_shard(shard: TargetShard) -> None:
    """Writes it, unless it is there already."""
    listed = shard.journal / shard.split
    digest = f"{listing_digest(listed, shard.first, shard.last)} {sorted(shard.left_out)}"
    if shard.record.is_whole(digest, shard.target):
        return
    shard.folder.mkdir(parents=True, exist_ok=True)
    with (
        ShardRecorder(shard.record) as recorder,
        contextlib.closing(SourceRecords(shard, recorder)) as pictures,
    ):
        to = formats.named(shard.to)
        if isinstance(to, Sharded):
            _write_shard(to, shard, pictures, recorder, digest)
        else:
            for record in pictures:
                _write_file(shard, record, Path(pictures.path), recorder)
            recorder.done(digest)


class SourceRecords:
    """The records for a shard; those that are bad are told to the journal, or end the job."""

    def __init__(self, shard: TargetShard, recorder: ShardRecorder) -> None:
        self._shard, self._recorder = shard, recorder
        self._to = formats.named(shard.to)
        self._shards: Shards | None = None
        if not shard.source.loose:
            folder = shard.source.folders[shard.split]
            self._shards = Shards(folder, read_index(folder).shards)
        self.last: ImageRecord
        self.path = ""

    def __iter__(self) -> Iterator[ImageRecord]:
        shard = self._shard
        for entry in read_listing(shard.journal / shard.split, shard.first, shard.last):
            name = shard.source.name(shard.split, entry.path)
            content, codes, note = self._read(entry, name)
            header = picture_header(content)
            codes = codes or picture_defects(content, header)
            if codes:
                tolerated = shard.keep.issuperset(codes) and self._to.unfit.isdisjoint(codes)
                trouble = PictureDefect(f"{shard.split}/{name}", tuple(codes), tolerated, note)
                if not tolerated and shard.on_bad == "stop":
                    raise UserError(f"{trouble}; mend or remove it, or give --on-bad skip.")
                self._recorder.troubles.append(trouble)
            jobs.count(1)
            if not codes or tolerated:
                size = header.width, header.height, header.components
                self.last = ImageRecord(name, entry.label, entry.number, content, header.format, *size)
                self.path = f"{shard.source.root}/{entry.path}"
                yield self.last

    def _read(self, entry: ListedPicture, name: str) -> tuple[bytes, list[str], str]:
        """The bytes, and what is wrong before one has looked at them."""
        if not 0 <= entry.label < len(self._shard.source.classes):
            return b"", [NO_LABEL], ""
        if any(mark in name for mark in self._to.forbidden) or not _stays_inside(name):
            return b"", [NAME], ""
        if f"{self._shard.split}/{name}" in self._shard.left_out:
            return b"", [MISLABELLED], ""
        if self._shards is not None and entry.size > self._to.largest:
            return b"", [TOO_LARGE], ""
        try:
            if self._shards is not None:
                return self._shards.read(entry.shard, entry.offset, entry.size), [], ""
            return read_regular(self._shard.source.root / entry.path, self._to.largest), [], ""
        except OSError as error:
            code = UNREADABLE_CODES.get(error.errno or 0, UNREADABLE)
            return b"", [code], error.strerror or "" if code == UNREADABLE else ""
        except ValueError as error:
            return b"", [UNREADABLE], str(error)

    def close(self) -> None:
        if self._shards is not None:
            self._shards.close()


def _stays_inside(name: str) -> bool:
    """A name must not lead out of the set's folder."""
    return not name.startswith("/") and ".." not in name.split("/") and "\0" not in name


def _write_shard(
    to: Sharded, shard: TargetShard, pictures: SourceRecords, recorder: ShardRecorder, digest: str
) -> None:
    name = shard.name
    parts: dict[str, Path] = {}
    try:
        with contextlib.ExitStack() as files:

            def opened(file_name: str) -> ShardFile:
                parts[file_name] = part_of(shard.folder / file_name)
                file = files.enter_context(parts[file_name].open("w+b", buffering=BUFFER))
                return ShardFile(file, lambda: opened(name + WHOLE))

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
                recorder.add_file(file.finish(), f"{shard.split}/{file_name}")
        for file_name, part in to.finish(name, parts[name]).items():
            parts[file_name] = part
            recorder.add_file(checksum_of(part), f"{shard.split}/{file_name}")
        recorder.done(digest, name + WHOLE in parts)
        for file_name, part in parts.items():
            part.replace(shard.folder / file_name)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _write_file(shard: TargetShard, record: ImageRecord, source: Path, recorder: ShardRecorder) -> None:
    """A hard link where the file system has them and source and target share it, else a copy."""
    path = shard.folder / record.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (shard.source.loose and _linked(source, path)):
        write_whole(path, record.data)
    recorder.add_picture(record.name, record.label, record.data, f"{shard.split}/{record.name}")


def _linked(source: Path, path: Path) -> bool:
    try:
        if source.is_symlink():
            return False
        path.unlink(missing_ok=True)
        os.link(source, path)
    except OSError:
        return False
    return True
