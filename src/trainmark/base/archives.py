"""The files in tar and zip archives and compressed streams, read once and forward within limits.

An archive may lie in another; a member that cannot be read comes with the reason and costs itself alone.
The sizes that headers claim are not trusted: `tarfile` seeks over a claimed terabyte block by block, keeps
headers of any length in memory and expands the holes of sparse files; it only decodes one header here.
"""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from trainmark.base import zip_file
from trainmark.base.streams import (
    CHUNK,
    COMPRESSED,
    LIMITS,
    Budget,
    ByteStream,
    CountedStream,
    DecompressedStream,
    JoinedStream,
    SourceError,
    SourceRefusal,
    UnpackLimits,
    naming,
)
from trainmark.base.zip_file import ZIP_MARKS

BLOCK = tarfile.BLOCKSIZE
TAR_MARK = b"ustar"
TAR_MARK_AT = slice(257, 262)
PAX_TYPES = {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE}
NAME_TYPES = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
# Of a name and some attributes; one that is longer is made to fill memory.
LONGEST_HEADER = 1 << 20
# An old sparse header says at these bytes whether another map block follows.
SPARSE_CONTINUES, MAP_CONTINUES = 482, 504
RECORD = re.compile(rb"(\d{1,20}) ([^=]+)=")
SPARSE_KEY = "GNU.sparse."
ENCODING = ("utf-8", "surrogateescape")
# A zip in a stream must be laid down to be read; one larger than this is to be unpacked by hand.
LARGEST_SPOOLED = 1 << 30


@dataclass(frozen=True)
class NamedStream:
    """One file that may lie in an archive: its name, and its bytes, which can be read once."""

    name: str
    chunks: Iterator[bytes]


Unpacked = NamedStream | SourceRefusal


def unpacked(name: str, stream: IO[bytes], limits: UnpackLimits = LIMITS) -> Iterator[Unpacked]:
    """The stream as one file, or as the files in the archive that it is; one archive may lie in another."""
    budget = Budget(name, limits)
    yield from _unpacked(name, CountedStream(stream, budget), budget, 0)


def _unpacked(name: str, whole: ByteStream, budget: Budget, depth: int) -> Iterator[Unpacked]:
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
                yield from _files_of_zip(name, whole, budget, depth)
            elif _is_tar(head):
                yield from _files_of_tar(name, whole, budget, depth)
            else:
                yield _file(name, head, whole)
    except SourceError as error:
        yield SourceRefusal(name, str(error))


def _files_of_zip(name: str, stream: ByteStream, budget: Budget, depth: int) -> Iterator[Unpacked]:
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


def _files_of_tar(name: str, stream: ByteStream, budget: Budget, depth: int) -> Iterator[Unpacked]:
    for member in tar_members(stream, name):
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


def _member(name: str, content: ByteStream, budget: Budget, depth: int) -> Iterator[Unpacked]:
    if depth == 0:
        yield from _unpacked(name, content, budget, depth + 1)
        return
    head = _head(content)
    if head.startswith((*ZIP_MARKS, *COMPRESSED)) or _is_tar(head):
        yield SourceRefusal(
            name, f"{name}: archives are read one inside another, no deeper; unpack it first."
        )
    else:
        yield _file(name, head, JoinedStream(head, content))


def _file(name: str, head: bytes, whole: ByteStream) -> Unpacked:
    if len(head) < BLOCK and not head.strip():
        return SourceRefusal(name, f"{name}: the file is empty.")
    return NamedStream(name, _chunks(name, whole))


def _is_tar(head: bytes) -> bool:
    return head[TAR_MARK_AT] == TAR_MARK


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


def _head(stream: ByteStream, size: int = BLOCK) -> bytes:
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    return head


def _chunks(name: str, stream: ByteStream) -> Iterator[bytes]:
    with naming(name):
        while chunk := stream.read(CHUNK):
            yield chunk


@dataclass(frozen=True)
class TarMember:
    """One member; `problem` is the sentence's end where its content cannot be read as a log."""

    name: str
    content: TarContent
    problem: str | None = None
    is_folder: bool = False


class TarContent:
    """The bytes of one member; what is not read is passed over when the next member is wanted."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream, self._left, self._padding = stream, size, -size % BLOCK

    def read(self, size: int = -1, /) -> bytes:
        wanted = min(self._left, CHUNK if size < 0 else size)
        chunk = self._stream.read(wanted) if wanted else b""
        if wanted and not chunk:
            self._left = self._padding = 0
            raise EOFError("the archive ends within it")
        self._left -= len(chunk)
        return chunk

    def skip(self) -> None:
        while self._left:
            self.read(CHUNK)
        if self._padding:
            _exactly(self._stream, self._padding)
            self._padding = 0


def tar_members(stream: ByteStream, name: str) -> Iterator[TarMember | SourceError]:
    """Every member in order; a SourceError in place of those that a damaged header hides."""
    always: dict[str, str] = {}
    own: dict[str, str] = {}
    is_lost = False
    while block := _exactly(stream, BLOCK):
        if not block.strip(b"\0") and not is_lost:
            return
        header = _header(block)
        if header is None:
            if not is_lost:
                yield SourceError(f"{name}: the header of a member is damaged; the member is not read.")
            is_lost = True
            continue
        is_lost = False
        if header.type in PAX_TYPES | NAME_TYPES:
            text = _long_header(stream, header, name)
            if header.type in PAX_TYPES:
                (always if header.type == tarfile.XGLTYPE else own).update(_records(text))
            elif header.type == tarfile.GNUTYPE_LONGNAME:
                own["path"] = text.split(b"\0")[0].decode(*ENCODING)
            continue
        member = _tar_member(stream, block, header, {**always, **own})
        own = {}
        yield member
        member.content.skip()


def _header(block: bytes) -> tarfile.TarInfo | None:
    # Most blocks that are passed over behind a damaged header are not worth a checksum.
    if len(block) < BLOCK or block[TAR_MARK_AT] != TAR_MARK:
        return None
    try:
        header = tarfile.TarInfo.frombuf(block, *ENCODING)
    except (tarfile.TarError, ValueError):
        return None
    return header if header.size >= 0 else None


def _tar_member(
    stream: ByteStream, block: bytes, header: tarfile.TarInfo, records: dict[str, str]
) -> TarMember:
    size, problem = header.size, None
    if "size" in records:
        if not re.fullmatch("[0-9]{1,20}", records["size"]):
            problem = "its size is no number"
        else:
            size = int(records["size"])
    if header.type == tarfile.GNUTYPE_SPARSE or any(key.startswith(SPARSE_KEY) for key in records):
        problem = "sparse files in archives are not read; pack it without --sparse"
    if header.type == tarfile.GNUTYPE_SPARSE and block[SPARSE_CONTINUES]:
        while (more := _exactly(stream, BLOCK)) and more[MAP_CONTINUES]:
            pass
    is_plain = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
    if not header.isreg() and not header.isdir():
        problem = "links and devices in archives are not followed"
    content = TarContent(stream, size if is_plain else 0)
    return TarMember(records.get("path", header.name), content, problem, header.isdir())


def _long_header(stream: ByteStream, header: tarfile.TarInfo, name: str) -> bytes:
    if header.size > LONGEST_HEADER:
        raise SourceError(f"{name}: a header of {header.size:,} bytes; the rest of the archive is not read.")
    text = _exactly(stream, header.size + -header.size % BLOCK)[: header.size]
    if len(text) < header.size:
        raise EOFError("the archive is cut off")
    return text


def _records(text: bytes) -> Iterator[tuple[str, str]]:
    """The records `LENGTH KEY=VALUE\\n` of a PAX header, up to the first that is none."""
    at = 0
    while (match := RECORD.match(text, at)) and match.end() <= at + int(match[1]) <= len(text):
        end = at + int(match[1])
        yield match[2].decode(*ENCODING), text[match.end() : end - 1].decode(*ENCODING)
        at = end


def _exactly(stream: ByteStream, size: int) -> bytes:
    """So many bytes; none at the end of the stream, EOFError where it ends within them."""
    data = b""
    while len(data) < size and (more := stream.read(size - len(data))):
        data += more
    if 0 < len(data) < size:
        raise EOFError("the archive is cut off")
    return data
