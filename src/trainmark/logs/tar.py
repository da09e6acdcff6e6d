"""The members of a tar archive, read once and forward, with no trust in the sizes that its headers claim.

`tarfile` seeks over a claimed terabyte block by block, keeps headers of any length in memory and expands the
holes of sparse files; of it, only the decoding of one header is used here.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.logs.streams import CHUNK, ByteStream, SourceError

BLOCK = tarfile.BLOCKSIZE
MARK = b"ustar"
MARK_AT = slice(257, 262)
PAX_TYPES = {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE}
NAME_TYPES = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
# Of a name and some attributes; one that is longer is made to fill memory.
LONGEST_HEADER = 1 << 20
# An old sparse header says at these bytes whether another map block follows.
SPARSE_CONTINUES, MAP_CONTINUES = 482, 504
RECORD = re.compile(rb"(\d{1,20}) ([^=]+)=")
SPARSE_KEY = "GNU.sparse."
ENCODING = ("utf-8", "surrogateescape")


@dataclass(frozen=True)
class TarMember:
    """One member; `problem` is the sentence's end where its content cannot be read as a log."""

    name: str
    content: Content
    problem: str | None = None
    is_folder: bool = False


class Content:
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


def members(stream: ByteStream, name: str) -> Iterator[TarMember | SourceError]:
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
        member = _member(stream, block, header, {**always, **own})
        own = {}
        yield member
        member.content.skip()


def _header(block: bytes) -> tarfile.TarInfo | None:
    # Most blocks that are passed over behind a damaged header are not worth a checksum.
    if len(block) < BLOCK or block[MARK_AT] != MARK:
        return None
    try:
        header = tarfile.TarInfo.frombuf(block, *ENCODING)
    except (tarfile.TarError, ValueError):
        return None
    return header if header.size >= 0 else None


def _member(stream: ByteStream, block: bytes, header: tarfile.TarInfo, records: dict[str, str]) -> TarMember:
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
    content = Content(stream, size if is_plain else 0)
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
