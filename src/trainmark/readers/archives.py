"""What lies in a compressed file or an archive: its logs as streams, or why one is not read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, Protocol, cast

from trainmark.errors import UserError

CHUNK = 4 << 20
# Logs compress 10 to 100 times; beyond this an archive of this size is made to fill a disk.
HIGHEST_RATIO = 250
RATIO_COUNTS_FROM = 256 << 20
MOST_MEMBERS = 100_000
# A zip in a stream must be laid down to be read; one larger than this is to be unpacked by hand.
LARGEST_LAID_DOWN = 1 << 30
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)


class SourceError(UserError):
    """The log cannot be read: where it is and why."""


@dataclass(frozen=True)
class Source:
    """One log: its name, and its bytes, which can be read once."""

    name: str
    chunks: Iterator[bytes]


@dataclass(frozen=True)
class Refusal:
    """One input that was not read, and the sentence that says why."""

    name: str
    sentence: str


Found = Source | Refusal


class Stream(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def unpacked(name: str, stream: IO[bytes], depth: int = 0) -> Iterator[Found]:
    """The stream as one log, or as the logs in the archive that it is; one archive may lie in another."""
    try:
        head = _head(stream)
        whole: Stream = _Joined(head, stream)
        magic = next((magic for magic in COMPRESSED if head.startswith(magic)), None)
        if magic is not None:
            packed = _Counted(whole)
            inner = _Guarded(COMPRESSED[magic](packed), packed, name)
            head = _head(inner)
            whole = _Joined(head, inner)
        if head.startswith(ZIP):
            yield from _zip_members(name, whole, depth)
        elif _is_tar(head):
            yield from _tar_members(name, whole, depth)
        else:
            yield _log(name, head, whole)
    except SourceError as error:
        yield Refusal(name, str(error))
    except BROKEN as error:
        yield Refusal(name, f"{name}: the archive is damaged: {error}.")


def _zip_members(name: str, stream: Stream, depth: int) -> Iterator[Found]:
    with _laid_down(name, stream) as file, zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        _bound_members(name, len(members))
        for member in members:
            inner = f"{name}!{member.filename}"
            is_link = member.external_attr >> 28 == 0o12
            if (refusal := _refused_member(inner, member.filename, is_link)) is not None:
                yield refusal
            elif member.flag_bits & 1:
                yield Refusal(inner, f"{inner}: this member is encrypted.")
            elif _is_bomb(member.file_size, member.compress_size):
                yield _bomb(inner)
            else:
                with archive.open(member) as content:
                    yield from _member(inner, content, depth)


def _tar_members(name: str, stream: Stream, depth: int) -> Iterator[Found]:
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as archive:
        for count, member in enumerate(archive, 1):
            _bound_members(name, count)
            inner = f"{name}!{member.name}"
            if member.isdir():
                continue
            if (refusal := _refused_member(inner, member.name, not member.isreg())) is not None:
                yield refusal
            elif (content := archive.extractfile(member)) is not None:
                yield from _member(inner, content, depth)


def _member(name: str, content: IO[bytes], depth: int) -> Iterator[Found]:
    if depth == 0:
        yield from unpacked(name, content, depth + 1)
        return
    head = _head(content)
    if head.startswith((*ZIP, *COMPRESSED)) or _is_tar(head):
        yield Refusal(name, f"{name}: archives are read one inside another, no deeper; unpack it first.")
    else:
        yield _log(name, head, _Joined(head, content))


def _log(name: str, head: bytes, whole: Stream) -> Found:
    if len(head) < tarfile.BLOCKSIZE and not head.strip():
        return Refusal(name, f"{name}: the file is empty.")
    return Source(name, _chunks(name, whole))


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _refused_member(name: str, path: str, special: bool) -> Refusal | None:
    if special:
        return Refusal(name, f"{name}: links and devices in archives are not followed.")
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if ".." in parts or path.startswith(("/", "\\")) or path[1:2] == ":":
        return Refusal(name, f"{name}: the member's path leads out of the archive.")
    return None


def _bound_members(name: str, count: int) -> None:
    if count > MOST_MEMBERS:
        raise SourceError(f"{name}: the archive has more than {MOST_MEMBERS:,} members.")


def _is_bomb(size: int, packed: int) -> bool:
    return size > RATIO_COUNTS_FROM and size > HIGHEST_RATIO * max(packed, 1)


def _bomb(name: str) -> Refusal:
    return Refusal(name, f"{name}: it unpacks to more than {HIGHEST_RATIO} times its size; not read.")


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


def _head(stream: Stream, size: int = tarfile.BLOCKSIZE) -> bytes:
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    return head


def _chunks(name: str, stream: Stream) -> Iterator[bytes]:
    try:
        while chunk := stream.read(CHUNK):
            yield chunk
    except BROKEN as error:
        raise SourceError(f"{name}: it breaks off: {error}.") from error


class _Joined:
    """What was read ahead, and the stream that it was read from, as one stream again."""

    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._stream.read(size)
        if size < 0 or size > len(self._head):
            taken, self._head = self._head, b""
            return taken + self._stream.read(-1 if size < 0 else size - len(taken))
        taken, self._head = self._head[:size], self._head[size:]
        return taken


class _Counted(_Joined):
    """Counts the bytes that pass."""

    count = 0

    def __init__(self, stream: Stream) -> None:
        super().__init__(b"", stream)

    def read(self, size: int = -1, /) -> bytes:
        chunk = super().read(size)
        self.count += len(chunk)
        return chunk


class _Guarded(_Joined):
    """A stream that unpacks, and stops when it unpacks to more than a log can."""

    def __init__(self, stream: Stream, packed: _Counted, name: str) -> None:
        super().__init__(b"", stream)
        self._packed, self._name, self._size = packed, name, 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = super().read(size)
        self._size += len(chunk)
        if _is_bomb(self._size, self._packed.count):
            raise SourceError(_bomb(self._name).sentence)
        return chunk
