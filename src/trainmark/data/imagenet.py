"""ImageNet (ILSVRC2012) from its two tars to class folders, by several processes.

Python's `tarfile` ends without a word at a bad header in the middle; the walk here tells it, and goes on at
the next good one.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from trainmark.base.errors import UserError
from trainmark.data.files import open_descriptor, read_dataset, read_index
from trainmark.data.imagenet_labels import Labels
from trainmark.data.jobs import Job, Progress
from trainmark.data.journal import Journal, ShardRecord, ShardRecorder, finish_folder_set, write_picture
from trainmark.data.picture import TOLERATED_DEFECTS, PictureDefect, picture_defects

DAMAGED, TOLERATED = "damaged", "kept"
# Beside the codes of pictures.
BAD_TAR, NO_LABEL, NAME, TWICE, EMPTY_CLASS = "tar", "no-label", "name", "twice", "empty-class"


@dataclass(frozen=True)
class TarNote:
    """`kind`: left out because it is damaged, or kept although it is unusual."""

    kind: str
    code: str
    text: str

    def line(self) -> str:
        return f"{self.kind} {self.code} {' '.join(self.text.split())}"

    @classmethod
    def of(cls, line: str) -> TarNote:
        return cls(*line.split(" ", 2))


def damaged_note(code: str, text: str) -> str:
    return TarNote(DAMAGED, code, text).line()


BLOCK = 512
MAGIC, MAGIC_AT = b"ustar", 257
PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
LONG_NAME, PAX = tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE
# Names are longer than this in no tar that we know; a crafted length must not fill the memory.
LONGEST_NAME = 1 << 16
SCAN = 1 << 20


@dataclass(frozen=True)
class TarEntry:
    """A plain file: `size` bytes from `offset`; not `whole` where the tar ends before they do."""

    name: str
    offset: int
    size: int
    whole: bool = True


@dataclass(frozen=True)
class TarDamage:
    """A sentence about what is wrong at this place."""

    at: int
    what: str


def is_tar(fd: int, begin: int = 0) -> bool:
    block = os.pread(fd, BLOCK, begin)
    return len(block) == BLOCK and (header(block) is not None or block[MAGIC_AT : MAGIC_AT + 5] == MAGIC)


def tar_members(fd: int, begin: int, end: int) -> Iterator[TarEntry | TarDamage]:
    """Every plain file between these places of the open file, in order."""
    at, long_name, long_size, last = begin, "", -1, "the beginning"
    while at + BLOCK <= end:
        block = os.pread(fd, BLOCK, at)
        if len(block) == BLOCK and not any(block):
            # Only padding may follow. Behind a lost header of a tar within the tar it is that one's end mark.
            then = _next_header(fd, at + BLOCK, end, begin)
            if then is None:
                return
            yield TarDamage(at, f"an end mark at byte {at:,}, after {last}, though more follows")
            at = then
            continue
        head = header(block)
        if head is None:
            then = _next_header(fd, at + BLOCK, end, begin)
            yield TarDamage(at, f"no tar header at byte {at:,}, after {last}; {_skipped(at, then)}")
            if then is None:
                return
            at, long_name, long_size = then, "", -1
            continue
        offset = at + BLOCK
        size = head.size
        if head.type in (LONG_NAME, PAX):
            content = os.pread(fd, min(size, LONGEST_NAME), offset)
            if head.type == LONG_NAME:
                long_name = content.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                long_name, long_size = _pax(content)
        else:
            name, size = long_name or head.name, long_size if long_size >= 0 else size
            if head.type in PLAIN:
                yield TarEntry(name, offset, min(size, end - offset), whole=offset + size <= end)
            if offset + size > end:
                yield TarDamage(at, f"the tar ends within {name}, after {end - offset:,} of {size:,} bytes")
                return
            last, long_name, long_size = name, "", -1
        at = offset + -(-size // BLOCK) * BLOCK
    yield TarDamage(min(at, end), f"the tar ends after {last}, without its end mark")


def header(block: bytes) -> tarfile.TarInfo | None:
    """What the block says, or None where its checksum or a number in it is wrong."""
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return None
    return member if member.size >= 0 else None


def _next_header(fd: int, at: int, end: int, begin: int) -> int | None:
    """The next block that is a header beyond doubt."""
    while at < end:
        chunk = os.pread(fd, min(SCAN, end - at), at)
        if not chunk:
            return None
        place = chunk.find(MAGIC)
        while place >= 0:
            start = at + place - MAGIC_AT
            # One that begins before this chunk was looked at with the last: chunks overlap by a block.
            if (
                (start - begin) % BLOCK == 0
                and start >= at
                and header(os.pread(fd, BLOCK, start)) is not None
            ):
                return start
            place = chunk.find(MAGIC, place + 1)
        at += max(BLOCK, len(chunk) - BLOCK)
    return None


def _skipped(at: int, then: int | None) -> str:
    return "nothing behind it can be read" if then is None else f"{then - at:,} bytes are lost"


def _pax(content: bytes) -> tuple[str, int]:
    """The path and the size that `LENGTH key=value` lines give to the next member, as far as they do."""
    path, size = "", -1
    for line in content.split(b"\n"):
        key, _, value = line.partition(b" ")[2].partition(b"=")
        if key == b"path":
            path = value.decode("utf-8", "surrogateescape")
        elif key == b"size" and value.isdigit():
            size = int(value)
    return path, size


SAFE = re.compile(r"[\w-][\w. -]*")
# No picture is as large; a wrong length must not fill the memory.
LARGEST = 1 << 30


def unpack_class(
    root: Path, tar: Path, synset: str, label: int, offset: int, size: int, record: ShardRecord
) -> None:
    """A class of the training set: a tar within the tar."""
    with open_descriptor(tar) as fd, ShardRecorder(record) as recorder:
        members = _noted(tar_members(fd, offset, offset + size), f"{synset}.tar", recorder.notes)
        _write(fd, root / TRAIN, ((member, synset, label) for member in members), recorder)
        if not recorder.count:
            recorder.notes.append(damaged_note(EMPTY_CLASS, f"{synset}.tar has no picture in it"))
        recorder.done()


def unpack_slice(
    root: Path, tar: Path, members: Iterable[tuple[TarEntry, str, int]], record: ShardRecord
) -> None:
    """Some images of the validation set, each with its synset."""
    with open_descriptor(tar) as fd, ShardRecorder(record) as recorder:
        _write(fd, root / VAL, members, recorder)
        recorder.done()


def _noted(members: Iterable[TarEntry | TarDamage], tar: str, notes: list[str]) -> Iterator[TarEntry]:
    """The members; what is damaged goes to the notes."""
    for entry in members:
        if isinstance(entry, TarDamage):
            notes.append(damaged_note(BAD_TAR, f"{tar}: {entry.what}"))
        else:
            yield entry


def _write(
    fd: int, split: Path, members: Iterable[tuple[TarEntry, str, int]], recorder: ShardRecorder
) -> None:
    written = set[str]()
    notes = recorder.notes
    for member, synset, label in members:
        name = f"{synset}/{PurePosixPath(member.name).name}"
        if not SAFE.fullmatch(PurePosixPath(member.name).name):
            notes.append(damaged_note(NAME, f"{synset}: {member.name!r} is no name for a file"))
        elif name in written:
            notes.append(damaged_note(TWICE, f"{name} comes twice"))
        elif not member.whole or member.size > LARGEST:
            notes.append(damaged_note(BAD_TAR, f"{name} is cut off"))
        else:
            content = os.pread(fd, member.size, member.offset)
            codes = tuple(picture_defects(content))
            what = str(PictureDefect(name, codes)) if codes else f"{name} cannot be read"
            if not set(codes) <= TOLERATED_DEFECTS or len(content) != member.size:
                notes.append(damaged_note(codes[0] if codes else BAD_TAR, what))
                continue
            write_picture(split / name, content)
            recorder.add_picture(name, label, content, f"{split.name}/{name}")
            written.add(name)
            notes += [TarNote(TOLERATED, code, str(PictureDefect(name, (code,)))).line() for code in codes]


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
    progress: Progress,
) -> UnpackedImageNet:
    """Begins a set or goes on with it; progress is in megabytes of the tars."""
    notes: list[str] = []
    # Read before anything is written: what is no tar leaves no folder behind.
    class_tars = _class_tars(train, notes) if train else {}
    classes = tuple(sorted(class_tars)) or (labels.classes if labels else ())
    class_labels = {name: label for label, name in enumerate(classes)}
    journal = Journal(root)
    jobs = []
    for synset, member in class_tars.items():
        key = f"{TRAIN}-{synset}-{member.size}"
        place = class_labels[synset], member.offset, member.size
        jobs.append(Job(unpack_class, (root, train, synset, *place, journal.record(key)), member.size, key))
    if val and labels:
        labelled = list(_labelled(val, labels, class_labels, notes))
        for number in range(0, len(labelled), IN_A_CHUNK):
            members = labelled[number : number + IN_A_CHUNK]
            key = f"{VAL}-{members[0][0].offset}-{members[-1][0].offset + members[-1][0].size}"
            size = sum(member.size for member, _, _ in members)
            jobs.append(Job(unpack_slice, (root, val, members, journal.record(key)), size, key))
    origin = _origin(train, val, labels)
    if not journal.open(origin):
        return _complete(root)
    unpacked = journal.carry_out(jobs, workers, lambda done, total: progress(done // MB, -(-total // MB)))
    facts = {job.key: journal.record(job.key).facts() for job in jobs}
    written = sum(facts[job.key]["written"] for job in unpacked)
    notes += [note for job in jobs for note in facts[job.key]["notes"]]
    splits = [split for split, tar in ((TRAIN, train), (VAL, val)) if tar]
    keys = {split: [key for key in facts if key.startswith(f"{split}-")] for split in splits}
    counts = {split: sum(facts[key]["written"] for key in keys[split]) for split in splits}
    read = tuple(TarNote.of(note) for note in notes)
    if (not skip and any(note.kind == DAMAGED for note in read)) or not all(counts.values()):
        # To be read again from a better tar, or to be skipped on request.
        for key, known in facts.items():
            if any(TarNote.of(note).kind == DAMAGED for note in known["notes"]):
                journal.record(key).forget()
        return UnpackedImageNet(False, len(classes), counts, written, 0, read)
    size = finish_folder_set(journal, classes, keys, {**origin, "notes": notes})
    return UnpackedImageNet(True, len(classes), counts, written, size, read)


def _class_tars(tar: Path, notes: list[str]) -> dict[str, TarEntry]:
    """The tar of each class by its synset."""
    tars: dict[str, TarEntry] = {}
    for member in _members(tar, notes):
        synset, ending = PurePosixPath(member.name).stem, PurePosixPath(member.name).suffix
        if ending != ".tar" or not SAFE.fullmatch(synset):
            notes.append(damaged_note(NAME, f"{tar.name}: {member.name!r} is no tar of a class"))
        elif synset in tars:
            notes.append(damaged_note(TWICE, f"{tar.name}: {member.name} comes twice"))
        else:
            tars[synset] = member
    return tars


def _labelled(
    tar: Path, labels: Labels, classes: Mapping[str, int], notes: list[str]
) -> Iterator[tuple[TarEntry, str, int]]:
    for member in _members(tar, notes):
        synset = labels.of(member.name)
        if synset is not None and synset in classes:
            yield member, synset, classes[synset]
        else:
            why = (
                "has no label" if synset is None else f"has the label {synset}, which is no class of this set"
            )
            notes.append(damaged_note(NO_LABEL, f"{PurePosixPath(member.name).name} {why}"))


def _members(tar: Path, notes: list[str]) -> Iterator[TarEntry]:
    with open_descriptor(tar) as fd:
        if not is_tar(fd):
            raise UserError(f"{tar} is no tar; give the ILSVRC2012 tar as it was downloaded.")
        yield from _noted(tar_members(fd, 0, tar.stat().st_size), tar.name, notes)


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
    dataset = read_dataset(root)
    size = sum(int(read_index(root / split).rows["size"].sum(dtype="u8")) for split in dataset.splits)
    notes = tuple(TarNote.of(line) for line in dataset.about.get("notes", []))
    return UnpackedImageNet(True, len(dataset.classes), dict(dataset.splits), 0, size, notes)
