"""The records of a shard that somebody else made are record and written down. Runs in its own process."""

from __future__ import annotations

import os
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets import formats
from trainmark.datasets.files import whole_file
from trainmark.datasets.mapped import mapped
from trainmark.datasets.reading import read_file
from trainmark.datasets.records.format import DamageError, Sharded
from trainmark.datasets.records.shard_file import RecordOffset, ShardFile
from trainmark.datasets.shard_record import WHOLE, ShardRecord, ShardRecorder
from trainmark.datasets.trouble import NO_LABEL, UNREADABLE, Trouble

LARGEST = (1 << 32) - 1


@dataclass(frozen=True)
class Task:
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


def index_shard(task: Task) -> dict[int, str]:
    """Writes the rows into the journal; gives back what each label is called where the names tell."""
    form = formats.named(task.format)
    with ShardRecorder(task.shard_record) as recorder:
        if isinstance(form, Sharded):
            classes = _index_shard(task, form, recorder)
        else:
            classes = _index_files(task, recorder)
    return classes


def _index_shard(task: Task, form: Sharded, recorder: ShardRecorder) -> dict[int, str]:
    path = task.root / task.files[0][0]
    classes: dict[int, str] = {}
    with ExitStack() as files, mapped(path) as data:

        def beside() -> ShardFile:
            return ShardFile(files.enter_context(whole_file(path.with_name(path.name + WHOLE))))

        second: ShardFile | None = None
        try:
            for record in form.scan(path):
                label = record.label + task.shift
                if label < 0:
                    raise UserError(
                        f"{path}: {Trouble(record.name or 'a record', (NO_LABEL,))}; see --labels-from."
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


def _index_files(task: Task, recorder: ShardRecorder) -> dict[int, str]:
    """Each is a shard of its own; its place is told relative to the split's folder."""
    folder = task.root / task.split
    with task.shard_record.path("shards").open("wb") as shards:
        for path, label in task.files:
            try:
                content = read_file(str(task.root / path), LARGEST) or b""
            except OSError as error:
                raise UserError(
                    f"{Trouble(path, (UNREADABLE,), note=error.strerror or '')}; remove it."
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
