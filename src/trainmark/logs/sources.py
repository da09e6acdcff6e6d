"""Find logs and open each as a stream that is read once: files, folders, globs, standard input, archives.

An archive may lie in another; what is not read comes with the reason.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from trainmark.base.files import open_regular
from trainmark.logs import tar, zip_file
from trainmark.logs.streams import (
    CHUNK,
    COMPRESSED,
    Budget,
    ByteStream,
    CountedStream,
    DecompressedStream,
    JoinedStream,
    SourceError,
    SourceRefusal,
    naming,
)
from trainmark.logs.zip_file import ZIP_MARKS

# A zip in a stream must be laid down to be read; one larger than this is to be unpacked by hand.
LARGEST_SPOOLED = 1 << 30


@dataclass(frozen=True)
class LogStream:
    """One log: its name, and its bytes, which can be read once."""

    name: str
    chunks: Iterator[bytes]


LogOrRefusal = LogStream | SourceRefusal


def unpacked(name: str, stream: IO[bytes]) -> Iterator[LogOrRefusal]:
    """The stream as one log, or as the logs in the archive that it is; one archive may lie in another."""
    budget = Budget(name)
    yield from _unpacked(name, CountedStream(stream, budget), budget, 0)


def _unpacked(name: str, whole: ByteStream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    try:
        with naming(name):
            head = _head(whole)
            whole = JoinedStream(head, whole)
            magic = next((magic for magic in COMPRESSED if head.startswith(magic)), None)
            if magic is not None:
                inner = DecompressedStream(whole, COMPRESSED[magic], budget, magic)
                head = _head(inner)
                whole = JoinedStream(head, inner)
            if head.startswith(ZIP_MARKS):
                yield from _zip_members(name, whole, budget, depth)
            elif _is_tar(head):
                yield from _tar_members(name, whole, budget, depth)
            else:
                yield _log(name, head, whole)
    except SourceError as error:
        yield SourceRefusal(name, str(error))


def _zip_members(name: str, stream: ByteStream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    with _spooled(name, stream) as file:
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
                yield SourceRefusal(inner, str(error))


def _tar_members(name: str, stream: ByteStream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    for member in tar.members(stream, name):
        if isinstance(member, SourceError):
            yield SourceRefusal(name, str(member))
            continue
        inner = f"{name}!{member.name}"
        budget.add_member(inner)
        if member.is_folder:
            continue
        if (refusal := _refused_member(inner, member.name, member.problem)) is not None:
            yield refusal
        else:
            yield from _member(inner, member.content, budget, depth)


def _member(name: str, content: ByteStream, budget: Budget, depth: int) -> Iterator[LogOrRefusal]:
    if depth == 0:
        yield from _unpacked(name, content, budget, depth + 1)
        return
    head = _head(content)
    if head.startswith((*ZIP_MARKS, *COMPRESSED)) or _is_tar(head):
        yield SourceRefusal(
            name, f"{name}: archives are read one inside another, no deeper; unpack it first."
        )
    else:
        yield _log(name, head, JoinedStream(head, content))


def _log(name: str, head: bytes, whole: ByteStream) -> LogOrRefusal:
    if len(head) < tar.BLOCK and not head.strip():
        return SourceRefusal(name, f"{name}: the file is empty.")
    return LogStream(name, _chunks(name, whole))


def _is_tar(head: bytes) -> bool:
    return head[tar.MARK_AT] == tar.MARK


def _refused_member(name: str, path: str, problem: str | None) -> SourceRefusal | None:
    if problem is not None:
        return SourceRefusal(name, f"{name}: {problem}.")
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if ".." in parts or path.startswith(("/", "\\")) or path[1:2] == ":":
        return SourceRefusal(name, f"{name}: the member's path leads out of the archive.")
    return None


@contextmanager
def _spooled(name: str, stream: ByteStream) -> Iterator[IO[bytes]]:
    """A zip is read from its end, so that it must become a file first."""
    size = 0
    with tempfile.TemporaryFile() as file:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            if size > LARGEST_SPOOLED:
                raise SourceError(f"{name}: too large a zip archive to read whole; unpack it first.")
            file.write(chunk)
        file.seek(0)
        yield file


def _head(stream: ByteStream, size: int = tar.BLOCK) -> bytes:
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    return head


def _chunks(name: str, stream: ByteStream) -> Iterator[bytes]:
    with naming(name):
        while chunk := stream.read(CHUNK):
            yield chunk


GLOB_MARKS = frozenset("*?[")


def sources(paths: Sequence[str]) -> Iterator[LogOrRefusal]:
    """Every log under these paths, in a stable order; `-` is standard input, a glob may stand for many."""
    for path in paths:
        try:
            with naming(path):
                yield from _at_path(path)
        except SourceError as error:
            yield SourceRefusal(path, str(error))


def _at_path(path: str) -> Iterator[LogOrRefusal]:
    if path == "-":
        yield from unpacked("-", sys.stdin.buffer)
        return
    matches = [Path(path)] if Path(path).exists() else _matching(path)
    if not matches:
        yield SourceRefusal(path, f"{path}: there is no such file or folder.")
    for match in matches:
        for file in _files(match):
            yield from _file(file)


def _matching(pattern: str) -> list[Path]:
    if not GLOB_MARKS & set(pattern):
        return []
    path = Path(pattern)
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if not name.startswith("."))


def _file(path: Path) -> Iterator[LogOrRefusal]:
    try:
        stream = open_regular(path)
    except OSError as error:
        hint = "; a pipe is read as `-`, standard input" if path.is_fifo() else ""
        yield SourceRefusal(str(path), f"{path}: {error.strerror}{hint}.")
        return
    with stream:
        yield from unpacked(str(path), stream)
