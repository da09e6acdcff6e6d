"""A shard without our index: whether it is what its format says, from its first byte to its last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets import formats, picture
from trainmark.datasets.reading import read_file
from trainmark.datasets.records.format import DamageError, Sharded
from trainmark.datasets.source import Picture, open_source
from trainmark.datasets.verify.finding import PICTURE, STRUCTURE, UNREADABLE, Finding

#: Index files that lie beside shards and have their name in them.
SIDE_ENDINGS = (".idx", ".lst", ".db", ".whole", ".part")
FOLDER_FILES = 1000


@dataclass(frozen=True)
class Task:
    """A shard, or some pictures that are files of their own."""

    root: Path
    format: str
    files: tuple[str, ...]


def shards_in(folder: Path, form: Sharded) -> list[Path]:
    """Files that look like shards of this format, in order."""
    paths = {path for pattern in form.patterns for path in folder.glob(pattern)}
    return sorted(path for path in paths if path.is_file() and not path.name.endswith(SIDE_ENDINGS))


def shards_of(root: Path) -> Iterator[Task]:
    """What there is to look at in a folder that somebody else made, or in one file."""
    if root.is_file():
        for form in sharded():
            if root in shards_in(root.parent, form):
                yield Task(root.parent, form.name, (root.name,))
                return
        return
    folders = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    for form in sharded():
        shards = [shard for folder in folders for shard in shards_in(folder, form)]
        yield from (Task(root, form.name, (shard.relative_to(root).as_posix(),)) for shard in shards)
        if shards:
            return
    try:
        source = open_source(root)
    except UserError:
        return
    for split in source.folders:
        paths = [entry.path for entry in source.pictures(split) if isinstance(entry, Picture)]
        for first in range(0, len(paths), FOLDER_FILES):
            yield Task(root, source.format, tuple(paths[first : first + FOLDER_FILES]))


def sharded() -> list[Sharded]:
    known = (formats.named(name) for name in formats.names())
    return [form for form in known if isinstance(form, Sharded)]


def check_structure(task: Task) -> tuple[int, list[Finding]]:
    """How many records there are, and what is wrong."""
    form = formats.named(task.format)
    if isinstance(form, Sharded):
        return _check_shard(task.root / task.files[0], task.files[0], form)
    checked = [(path, _problems(task.root / path)) for path in task.files]
    return len(task.files), [finding for _, finding in checked if finding is not None]


def _check_shard(path: Path, name: str, form: Sharded) -> tuple[int, list[Finding]]:
    count = 0
    try:
        for _ in form.scan(path):
            count += 1
    except DamageError as error:
        return count, [Finding(name, STRUCTURE, f"{error}, behind {count:,} records")]
    except OSError as error:
        return count, [Finding(name, UNREADABLE, f"cannot be read ({error.strerror})")]
    return count, []


def _problems(path: Path) -> Finding | None:
    try:
        codes = [
            code
            for code in picture.problems(read_file(str(path), 1 << 32) or b"")
            if code not in picture.BEARABLE
        ]
    except OSError as error:
        return Finding(path.name, UNREADABLE, f"cannot be read ({error.strerror})")
    what = " and ".join(picture.WORDS[code] for code in codes)
    return Finding(path.name, PICTURE, what) if codes else None
