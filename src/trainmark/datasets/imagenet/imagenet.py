"""Both tars to class folders: finds the members, hands them to workers, and finishes the set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from trainmark.base.errors import UserError
from trainmark.datasets.files import opened
from trainmark.datasets.folder import finish, intact
from trainmark.datasets.imagenet.labels import Labels
from trainmark.datasets.imagenet.note import DAMAGED, NAME, NO_LABEL, TAR, TOLERATED, Note, damaged
from trainmark.datasets.imagenet.tar import Damage, Member, is_tar, walk
from trainmark.datasets.imagenet.unpack import SAFE, ClassTar, Some, Task, unpack
from trainmark.datasets.journal import Journal
from trainmark.datasets.workers import in_parallel

TRAIN, VAL = "train", "val"
MADE_BY = "trainmark data imagenet"
IN_A_CHUNK = 256
MB = 1_000_000


@dataclass(frozen=True)
class Unpacked:
    """`finished` is False where something was damaged and was not to be skipped; `written`: by this call."""

    finished: bool
    classes: int
    splits: dict[str, int]
    written: int
    bytes: int
    notes: tuple[Note, ...]

    def of_kind(self, kind: str) -> list[Note]:
        return [note for note in self.notes if note.kind == kind]


def unpack_imagenet(
    train: Path | None,
    val: Path | None,
    labels: Labels | None,
    root: Path,
    workers: int,
    skip: bool,
    progress: Callable[[int, int], None],
) -> Unpacked:
    """Begins a set or goes on with it; progress is in megabytes of the tars."""
    notes: list[Note] = []
    tasks: list[Task] = []
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
    bad = [note for note in notes if note.kind == DAMAGED]
    if (bad and not skip) or not all(counts.values()):
        # To be read again from a better tar, or to be skipped on request.
        journal.forget(task.chunk for task in tasks if _has_damage(journal, task.chunk))
        return Unpacked(False, len(classes), counts, written, 0, tuple(notes))
    about = {**origin, "notes": [note.line() for note in notes]}
    size = finish(journal, classes, chunks, about)
    return Unpacked(True, len(classes), counts, written, size, tuple(notes))


def _carry_out(
    tasks: list[Task], journal: Journal, workers: int, progress: Callable[[int, int], None]
) -> tuple[int, list[Note]]:
    total = sum(task.size for task in tasks)
    todo = [task for task in tasks if not intact(journal, task.chunk, task.split)]
    done, written = total - sum(task.size for task in todo), 0
    progress(done // MB, -(-total // MB))
    for task, chunk in in_parallel(unpack, todo, workers):
        journal.keep(task.chunk, chunk)
        written += len(chunk.entries)
        done += task.size
        progress(done // MB, -(-total // MB))
    lines = (line for task in tasks for line in journal.read(task.chunk).notes)
    return written, [Note.of(line) for line in lines]


def _class_tars(tar: Path, split: Path, notes: list[Note]) -> Iterator[ClassTar]:
    for member in _members(tar, notes):
        path = PurePosixPath(member.name)
        if path.suffix == ".tar" and SAFE.fullmatch(path.stem):
            yield ClassTar(split, tar, path.stem, member.offset, member.size)
        else:
            notes.append(damaged(NAME, f"{tar.name}: {member.name!r} is no tar of a class"))


def _validation(
    tar: Path, split: Path, labels: Labels, classes: frozenset[str], notes: list[Note]
) -> Iterator[Some]:
    labelled: list[tuple[Member, str]] = []
    for member in _members(tar, notes):
        synset = labels.of(member.name)
        if synset in classes and synset is not None:
            labelled.append((member, synset))
        else:
            why = (
                "has no label" if synset is None else f"has the label {synset}, which is no class of this set"
            )
            notes.append(damaged(NO_LABEL, f"{PurePosixPath(member.name).name} {why}"))
    for first in range(0, len(labelled), IN_A_CHUNK):
        yield Some(split, tar, tuple(labelled[first : first + IN_A_CHUNK]))


def _members(tar: Path, notes: list[Note]) -> Iterator[Member]:
    with opened(tar) as fd:
        if not is_tar(fd):
            raise UserError(f"{tar} is no tar; give the ILSVRC2012 tar as it was downloaded.")
        for entry in walk(fd, 0, tar.stat().st_size):
            if isinstance(entry, Damage):
                notes.append(damaged(TAR, f"{tar.name}: {entry.what}"))
            else:
                yield entry


def _has_damage(journal: Journal, chunk: str) -> bool:
    return any(Note.of(line).kind == DAMAGED for line in journal.read(chunk).notes)


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


def _complete(root: Path) -> Unpacked:
    """As it was finished before."""
    from trainmark.datasets.index import read_dataset, read_index

    dataset = read_dataset(root)
    size = sum(int(read_index(root / split).rows["size"].sum(dtype="u8")) for split in dataset.splits)
    notes = tuple(Note.of(line) for line in dataset.about.get("notes", []))
    return Unpacked(True, len(dataset.classes), dict(dataset.splits), 0, size, notes)


__all__ = ["DAMAGED", "TOLERATED", "Unpacked", "unpack_imagenet"]
