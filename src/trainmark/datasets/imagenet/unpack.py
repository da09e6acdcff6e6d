"""What a worker does: reads some members of a tar, once, and writes those that are whole pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmark.datasets.files import opened
from trainmark.datasets.folder import write_image
from trainmark.datasets.imagenet.note import EMPTY, NAME, TAR, TWICE, Note, damaged, unusual
from trainmark.datasets.imagenet.tar import Damage, Member, walk
from trainmark.datasets.journal import Chunk, Entry
from trainmark.datasets.picture import BEARABLE, problems, sentence

SAFE = re.compile(r"[\w-][\w. -]*")
# No picture is as large; a wrong length must not fill the memory.
LARGEST = 1 << 30


@dataclass(frozen=True)
class ClassTar:
    """A class of the training set: a tar within the tar."""

    split: Path
    tar: Path
    synset: str
    offset: int
    size: int

    @property
    def chunk(self) -> str:
        return f"train-{self.synset}-{self.size}"


@dataclass(frozen=True)
class Some:
    """Some images of the validation set, each with its synset."""

    split: Path
    tar: Path
    members: tuple[tuple[Member, str], ...]

    @property
    def chunk(self) -> str:
        first, last = self.members[0][0], self.members[-1][0]
        return f"val-{first.offset}-{last.offset + last.size}"

    @property
    def size(self) -> int:
        return sum(member.size for member, _ in self.members)


Task = ClassTar | Some


def unpack(task: Task) -> Chunk:
    with opened(task.tar) as fd:
        if isinstance(task, Some):
            return _written(fd, task.split, task.members, [])
        notes: list[Note] = []
        chunk = _written(fd, task.split, _of_class(fd, task, notes), notes)
    if not chunk.entries:
        empty = damaged(EMPTY, f"{task.synset}.tar has no picture in it")
        chunk = Chunk((), (*chunk.notes, empty.line()))
    return chunk


def _of_class(fd: int, task: ClassTar, notes: list[Note]) -> Iterator[tuple[Member, str]]:
    for entry in walk(fd, task.offset, task.offset + task.size):
        if isinstance(entry, Damage):
            notes.append(damaged(TAR, f"{task.synset}.tar: {entry.what}"))
        else:
            yield entry, task.synset


def _written(fd: int, split: Path, members: Iterable[tuple[Member, str]], notes: list[Note]) -> Chunk:
    entries: dict[str, Entry] = {}
    for member, synset in members:
        name = f"{synset}/{PurePosixPath(member.name).name}"
        if not SAFE.fullmatch(PurePosixPath(member.name).name):
            notes.append(damaged(NAME, f"{synset}: {member.name!r} is no name for a file"))
        elif name in entries:
            notes.append(damaged(TWICE, f"{name} comes twice"))
        elif member.whole and member.size <= LARGEST:
            content = os.pread(fd, member.size, member.offset)
            codes = problems(content)
            if not set(codes) <= BEARABLE or len(content) != member.size:
                notes.append(
                    damaged(
                        codes[0] if codes else TAR,
                        sentence(name, codes) if codes else f"{name} cannot be read",
                    )
                )
                continue
            entries[name] = write_image(split, name, content)
            notes += [unusual(code, sentence(name, [code])) for code in codes]
        else:
            notes.append(damaged(TAR, f"{name} is cut off"))
    return Chunk(tuple(entries.values()), tuple(note.line() for note in notes))
