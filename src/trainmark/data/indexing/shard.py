"""The records of a shard that somebody else made are found and written down. Runs in its own process."""

from __future__ import annotations

import os
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from trainmark.data import formats
from trainmark.data.files import whole_file
from trainmark.data.kept import WHOLE, Keeping, Kept
from trainmark.data.mapped import mapped
from trainmark.data.reading import read_file
from trainmark.data.records.format import DamageError, Sharded
from trainmark.data.records.shard_file import Place, ShardFile
from trainmark.data.trouble import NO_LABEL, UNREADABLE, Trouble
from trainmark.errors import UserError

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
    def kept(self) -> Kept:
        return Kept(self.journal, f"{self.split}-{self.number:05d}")


def index_shard(task: Task) -> dict[int, str]:
    """Writes the rows into the journal; gives back what each label is called where the names tell."""
    form = formats.named(task.format)
    with Keeping(task.kept) as keeping:
        if isinstance(form, Sharded):
            classes = _index_shard(task, form, keeping)
        else:
            classes = _index_files(task, keeping)
    return classes


def _index_shard(task: Task, form: Sharded, keeping: Keeping) -> dict[int, str]:
    path = task.root / task.files[0][0]
    classes: dict[int, str] = {}
    with ExitStack() as files, mapped(path) as data:

        def beside() -> ShardFile:
            return ShardFile(files.enter_context(whole_file(path.with_name(path.name + WHOLE))))

        second: ShardFile | None = None
        try:
            for found in form.scan(path):
                label = found.label + task.shift
                if label < 0:
                    raise UserError(
                        f"{path}: {Trouble(found.name or 'a record', (NO_LABEL,))}; see --labels-from."
                    )
                classes[label] = found.name.rpartition("/")[0]
                crc = zlib.crc32(data[found.begin : found.begin + found.length])
                place = Place(found.begin, found.length, found.offset, found.size, crc)
                if found.offset < 0:
                    second = second or beside()
                    content = form.gather(path, found.begin)
                    place = place._replace(whole=second.add(content, 0, len(content)))
                keeping.add(found.name, label, place, b"")
        except DamageError as error:
            raise UserError(f"{path} is damaged: {error}; get it once more.") from error
    keeping.done("", keeping.count, second is not None)
    return classes


def _index_files(task: Task, keeping: Keeping) -> dict[int, str]:
    """Each is a shard of its own; its place is told relative to the split's folder."""
    folder = task.root / task.split
    with task.kept.path("shards").open("wb") as shards:
        for path, label in task.files:
            try:
                content = read_file(str(task.root / path), LARGEST) or b""
            except OSError as error:
                raise UserError(
                    f"{Trouble(path, (UNREADABLE,), note=error.strerror or '')}; remove it."
                ) from error
            size = len(content)
            keeping.add(
                path.removeprefix(f"{task.split}/"), label, Place(0, size, 0, size, zlib.crc32(content)), b""
            )
            place = os.path.relpath(task.root / path, folder)
            shards.write(f"{place}\n".encode("utf-8", "surrogateescape"))
    keeping.done("", keeping.count, has_second=False)
    return {}
