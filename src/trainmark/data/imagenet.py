"""ImageNet (ILSVRC2012) from its two tars to class folders, by several processes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from trainmark.base.errors import UserError
from trainmark.data.defects import (
    BAD_TAR,
    TAR_DAMAGED,
    TAR_EMPTY_CLASS,
    TAR_NAME,
    TAR_NO_LABEL,
    TAR_TWICE,
    TarNote,
    damaged_note,
    unusual_note,
)
from trainmark.data.files import open_descriptor
from trainmark.data.imagenet_labels import Labels
from trainmark.data.journal import Chunk, FileEntry, Journal, finish_folder_set, is_chunk_intact, write_image
from trainmark.data.picture import TOLERATED_DEFECTS, defect_sentence, picture_defects
from trainmark.data.tar import TarDamage, TarEntry, is_tar, tar_members
from trainmark.data.workers import in_parallel

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
class ValidationSlice:
    """Some images of the validation set, each with its synset."""

    split: Path
    tar: Path
    members: tuple[tuple[TarEntry, str], ...]

    @property
    def chunk(self) -> str:
        first, last = self.members[0][0], self.members[-1][0]
        return f"val-{first.offset}-{last.offset + last.size}"

    @property
    def size(self) -> int:
        return sum(member.size for member, _ in self.members)


UnpackJob = ClassTar | ValidationSlice


def unpack_members(task: UnpackJob) -> Chunk:
    with open_descriptor(task.tar) as fd:
        if isinstance(task, ValidationSlice):
            return _written(fd, task.split, task.members, [])
        notes: list[TarNote] = []
        chunk = _written(fd, task.split, _of_class(fd, task, notes), notes)
    if not chunk.entries:
        empty = damaged_note(TAR_EMPTY_CLASS, f"{task.synset}.tar has no picture in it")
        chunk = Chunk((), (*chunk.notes, empty.line()))
    return chunk


def _of_class(fd: int, task: ClassTar, notes: list[TarNote]) -> Iterator[tuple[TarEntry, str]]:
    for entry in tar_members(fd, task.offset, task.offset + task.size):
        if isinstance(entry, TarDamage):
            notes.append(damaged_note(BAD_TAR, f"{task.synset}.tar: {entry.what}"))
        else:
            yield entry, task.synset


def _written(fd: int, split: Path, members: Iterable[tuple[TarEntry, str]], notes: list[TarNote]) -> Chunk:
    entries: dict[str, FileEntry] = {}
    for member, synset in members:
        name = f"{synset}/{PurePosixPath(member.name).name}"
        if not SAFE.fullmatch(PurePosixPath(member.name).name):
            notes.append(damaged_note(TAR_NAME, f"{synset}: {member.name!r} is no name for a file"))
        elif name in entries:
            notes.append(damaged_note(TAR_TWICE, f"{name} comes twice"))
        elif member.whole and member.size <= LARGEST:
            content = os.pread(fd, member.size, member.offset)
            codes = picture_defects(content)
            if not set(codes) <= TOLERATED_DEFECTS or len(content) != member.size:
                notes.append(
                    damaged_note(
                        codes[0] if codes else BAD_TAR,
                        defect_sentence(name, codes) if codes else f"{name} cannot be read",
                    )
                )
                continue
            entries[name] = write_image(split, name, content)
            notes += [unusual_note(code, defect_sentence(name, [code])) for code in codes]
        else:
            notes.append(damaged_note(BAD_TAR, f"{name} is cut off"))
    return Chunk(tuple(entries.values()), tuple(note.line() for note in notes))


TRAIN, VAL = "train", "val"
MADE_BY = "trainmark data imagenet"
IN_A_CHUNK = 256
MB = 1_000_000


@dataclass(frozen=True)
class UnpackedImageNet:
    """`finished` is False where something was damaged and was not to be skipped; `written`: by this call."""

    finished: bool
    classes: int
    splits: dict[str, int]
    written: int
    bytes: int
    notes: tuple[TarNote, ...]

    def of_kind(self, kind: str) -> list[TarNote]:
        return [note for note in self.notes if note.kind == kind]


def unpack_imagenet(
    train: Path | None,
    val: Path | None,
    labels: Labels | None,
    root: Path,
    workers: int,
    skip: bool,
    progress: Callable[[int, int], None],
) -> UnpackedImageNet:
    """Begins a set or goes on with it; progress is in megabytes of the tars."""
    notes: list[TarNote] = []
    tasks: list[UnpackJob] = []
    # Read before anything is written: what is no tar leaves no folder behind.
    class_tars = list(_class_tars(train, root / TRAIN, notes)) if train else []
    classes = tuple(sorted({task.synset for task in class_tars}))
    if val and labels:
        classes = classes or labels.classes
        tasks = [*class_tars, *_validation(val, root / VAL, labels, frozenset(classes), notes)]
    else:
        tasks = [*class_tars]
    splits = [split for split, tar in ((TRAIN, train), (VAL, val)) if tar]
    journal = Journal(root)
    origin = _origin(train, val, labels)
    if not journal.open(origin):
        return _complete(root)
    written, chunk_notes = _carry_out(tasks, journal, workers, progress)
    notes += chunk_notes
    chunks = {split: [task.chunk for task in tasks if task.split.name == split] for split in splits}
    counts = {
        split: sum(len(journal.read(name).entries) for name in names) for split, names in chunks.items()
    }
    bad = [note for note in notes if note.kind == TAR_DAMAGED]
    if (bad and not skip) or not all(counts.values()):
        # To be read again from a better tar, or to be skipped on request.
        journal.forget(task.chunk for task in tasks if _has_damage(journal, task.chunk))
        return UnpackedImageNet(False, len(classes), counts, written, 0, tuple(notes))
    about = {**origin, "notes": [note.line() for note in notes]}
    size = finish_folder_set(journal, classes, chunks, about)
    return UnpackedImageNet(True, len(classes), counts, written, size, tuple(notes))


def _carry_out(
    tasks: list[UnpackJob], journal: Journal, workers: int, progress: Callable[[int, int], None]
) -> tuple[int, list[TarNote]]:
    total = sum(task.size for task in tasks)
    todo = [task for task in tasks if not is_chunk_intact(journal, task.chunk, task.split)]
    done, written = total - sum(task.size for task in todo), 0
    progress(done // MB, -(-total // MB))
    for task, chunk in in_parallel(unpack_members, todo, workers):
        journal.keep(task.chunk, chunk)
        written += len(chunk.entries)
        done += task.size
        progress(done // MB, -(-total // MB))
    lines = (line for task in tasks for line in journal.read(task.chunk).notes)
    return written, [TarNote.of(line) for line in lines]


def _class_tars(tar: Path, split: Path, notes: list[TarNote]) -> Iterator[ClassTar]:
    for member in _members(tar, notes):
        path = PurePosixPath(member.name)
        if path.suffix == ".tar" and SAFE.fullmatch(path.stem):
            yield ClassTar(split, tar, path.stem, member.offset, member.size)
        else:
            notes.append(damaged_note(TAR_NAME, f"{tar.name}: {member.name!r} is no tar of a class"))


def _validation(
    tar: Path, split: Path, labels: Labels, classes: frozenset[str], notes: list[TarNote]
) -> Iterator[ValidationSlice]:
    labelled: list[tuple[TarEntry, str]] = []
    for member in _members(tar, notes):
        synset = labels.of(member.name)
        if synset in classes and synset is not None:
            labelled.append((member, synset))
        else:
            why = (
                "has no label" if synset is None else f"has the label {synset}, which is no class of this set"
            )
            notes.append(damaged_note(TAR_NO_LABEL, f"{PurePosixPath(member.name).name} {why}"))
    for first in range(0, len(labelled), IN_A_CHUNK):
        yield ValidationSlice(split, tar, tuple(labelled[first : first + IN_A_CHUNK]))


def _members(tar: Path, notes: list[TarNote]) -> Iterator[TarEntry]:
    with open_descriptor(tar) as fd:
        if not is_tar(fd):
            raise UserError(f"{tar} is no tar; give the ILSVRC2012 tar as it was downloaded.")
        for entry in tar_members(fd, 0, tar.stat().st_size):
            if isinstance(entry, TarDamage):
                notes.append(damaged_note(BAD_TAR, f"{tar.name}: {entry.what}"))
            else:
                yield entry


def _has_damage(journal: Journal, chunk: str) -> bool:
    return any(TarNote.of(line).kind == TAR_DAMAGED for line in journal.read(chunk).notes)


def _origin(train: Path | None, val: Path | None, labels: Labels | None) -> dict[str, Any]:
    """What a set is begun with and must be gone on with."""
    known = (
        "".join(f"{number} {synset}\n" for number, synset in sorted(labels.synsets.items())) if labels else ""
    )
    return {
        "made_by": MADE_BY,
        "train_tar": train.name if train else None,
        "val_tar": val.name if val else None,
        "val_labels_sha256": hashlib.sha256(known.encode()).hexdigest() if labels else None,
    }


def _complete(root: Path) -> UnpackedImageNet:
    """As it was finished before."""
    from trainmark.data.index import read_dataset, read_index

    dataset = read_dataset(root)
    size = sum(int(read_index(root / split).rows["size"].sum(dtype="u8")) for split in dataset.splits)
    notes = tuple(TarNote.of(line) for line in dataset.about.get("notes", []))
    return UnpackedImageNet(True, len(dataset.classes), dict(dataset.splits), 0, size, notes)
