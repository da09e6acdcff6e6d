"""What lies in a compressed file or an archive: its logs as streams, or why one is not read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from trainmark.published.readers.input import tar, zip_file
from trainmark.published.readers.input.budget import Budget
from trainmark.published.readers.input.refusal import Refusal, SourceError, naming
from trainmark.published.readers.input.streams import CHUNK, COMPRESSED, Counted, Joined, Stream, Unpacked
from trainmark.published.readers.input.zip_file import ZIP_MARKS

# A zip in a stream must be laid down to be read; one larger than this is to be unpacked by hand.
LARGEST_LAID_DOWN = 1 << 30


@dataclass(frozen=True)
class LogStream:
    """One log: its name, and its bytes, which can be read once."""

    name: str
    chunks: Iterator[bytes]


LogOrRefusal = LogStream | Refusal


def unpacked(name: str, stream: IO[bytes]) -> Iterator[LogOrRefusal]:
    """The stream as one log, or as the logs in the archive that it is; one archive may lie in another."""
    budget = Budget(name)
    yield from _unpacked(name, Counted(stream, budget), budget, 0)


def _unpacked(name: str, whole: Stream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    try:
        with naming(name):
            head = _head(whole)
            whole = Joined(head, whole)
            magic = next((magic for magic in COMPRESSED if head.startswith(magic)), None)
            if magic is not None:
                inner = Unpacked(whole, COMPRESSED[magic], budget, magic)
                head = _head(inner)
                whole = Joined(head, inner)
            if head.startswith(ZIP_MARKS):
                yield from _zip_members(name, whole, budget, depth)
            elif _is_tar(head):
                yield from _tar_members(name, whole, budget, depth)
            else:
                yield _log(name, head, whole)
    except SourceError as error:
        yield Refusal(name, str(error))


def _zip_members(name: str, stream: Stream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    with _laid_down(name, stream) as file:
        for entry in zip_file.entries(file):
            inner = f"{name}!{entry.name}"
            budget.add_member(inner)
            if entry.is_folder:
                continue
            problem = entry.problem
            if budget.exceeded_by(entry.size):
                problem = f"with it, {budget.limit}; it is not read"
            if (refusal := _refused_member(inner, entry.name, problem)) is not None:
                yield refusal
                continue
            try:
                with naming(inner):
                    yield from _member(inner, zip_file.content(file, entry, budget), budget, depth)
            except SourceError as error:
                yield Refusal(inner, str(error))


def _tar_members(name: str, stream: Stream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    for member in tar.members(stream, name):
        if isinstance(member, SourceError):
            yield Refusal(name, str(member))
            continue
        inner = f"{name}!{member.name}"
        budget.add_member(inner)
        if member.is_folder:
            continue
        if (refusal := _refused_member(inner, member.name, member.problem)) is not None:
            yield refusal
        else:
            yield from _member(inner, member.content, budget, depth)


def _member(name: str, content: Stream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    if depth == 0:
        yield from _unpacked(name, content, budget, depth + 1)
        return
    head = _head(content)
    if head.startswith((*ZIP_MARKS, *COMPRESSED)) or _is_tar(head):
        yield Refusal(name, f"{name}: archives are read one inside another, no deeper; unpack it first.")
    else:
        yield _log(name, head, Joined(head, content))


def _log(name: str, head: bytes, whole: Stream) -> LogOrRefusal:
    if len(head) < tar.BLOCK and not head.strip():
        return Refusal(name, f"{name}: the file is empty.")
    return LogStream(name, _chunks(name, whole))


def _is_tar(head: bytes) -> bool:
    return head[tar.MARK_AT] == tar.MARK


def _refused_member(name: str, path: str, problem: str | None) -> Refusal | None:
    if problem is not None:
        return Refusal(name, f"{name}: {problem}.")
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if ".." in parts or path.startswith(("/", "\\")) or path[1:2] == ":":
        return Refusal(name, f"{name}: the member's path leads out of the archive.")
    return None


@contextmanager
def _laid_down(name: str, stream: Stream) -> Iterator[IO[bytes]]:
    """A zip is read from its end, so that it must become a file first."""
    size = 0
    with tempfile.TemporaryFile() as file:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            if size > LARGEST_LAID_DOWN:
                raise SourceError(f"{name}: too large a zip archive to read whole; unpack it first.")
            file.write(chunk)
        file.seek(0)
        yield file


def _head(stream: Stream, size: int = tar.BLOCK) -> bytes:
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    return head


def _chunks(name: str, stream: Stream) -> Iterator[bytes]:
    with naming(name):
        while chunk := stream.read(CHUNK):
            yield chunk
