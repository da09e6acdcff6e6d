"""The members of a zip archive in a file, one entry of its directory at a time.

`zipfile` gives up the whole archive for one entry that it does not know, keeps every entry in memory and
unpacks some methods in steps without bound; here a bad entry costs itself, and steps are bounded.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from trainmark.base.streams import (
    CHUNK,
    MOST_XZ_MEMORY,
    Budget,
    ByteStream,
    DecompressedStream,
    Inflate,
    JoinedStream,
)

ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
END, LONGEST_COMMENT = struct.Struct("<4s4H2LH"), 0xFFFF
LOCATOR, END64 = struct.Struct("<4sLQL"), struct.Struct("<4sQ2H2L4Q")
ENTRY, LOCAL = struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s22xHH")
UNSET32 = 0xFFFFFFFF
ZIP64_EXTRA = 1
ENCRYPTED, HAS_END_MARK, PATCHED, UTF8 = 1, 2, 0x20, 0x800
STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14
METHODS = {9: "Deflate64", 93: "Zstandard", 95: "XZ", 98: "PPMd", 99: "AES encryption"}
SYMLINK = 0o12


@dataclass(frozen=True)
class ZipEntry:
    """One entry of the directory: what it claims, and why it cannot be read where that is known."""

    name: str
    method: int
    flags: int
    checksum: int
    packed: int
    size: int
    offset: int
    problem: str | None

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def entries(file: IO[bytes]) -> Iterator[ZipEntry]:
    """Every entry in the order of the directory; OSError where there is none, or it is damaged."""
    begin, size, shift = _directory(file)
    at, end = begin, begin + size
    while at < end:
        file.seek(at)
        head = file.read(ENTRY.size)
        if len(head) < ENTRY.size or not head.startswith(b"PK\x01\x02"):
            raise OSError("the directory of the archive is damaged")
        fields = ENTRY.unpack(head)
        lengths = fields[10:13]
        rest = file.read(sum(lengths[:2]))
        at += ENTRY.size + sum(lengths)
        yield _entry(fields, rest[: lengths[0]], rest[lengths[0] :], shift)


def content(file: IO[bytes], entry: ZipEntry, budget: Budget) -> ByteStream:
    """The bytes of one member, unpacked in bounded steps, counted and compared with their checksum."""
    file.seek(entry.offset)
    head = file.read(LOCAL.size)
    if len(head) < LOCAL.size or not head.startswith(b"PK\x03\x04"):
        raise OSError("there is no member where the directory says")
    raw: ByteStream = _FileSlice(file, entry.offset + LOCAL.size + sum(LOCAL.unpack(head)[1:]), entry.packed)
    if entry.method == LZMA:
        # The same as the old .lzma form behind another header; liblzma bounds the memory only for that.
        _, length = struct.unpack("<HH", raw.read(4).ljust(4, b"\0"))
        size = -1 if entry.flags & HAS_END_MARK else entry.size
        raw = JoinedStream(raw.read(length) + struct.pack("<q", min(size, 1 << 62)), raw)
    unpacked = raw if entry.method == STORED else DecompressedStream(raw, DECODERS[entry.method], budget)
    return _CheckedStream(unpacked, entry, budget if entry.method == STORED else None)


DECODERS: dict[int, Callable[[], Any]] = {
    DEFLATED: lambda: Inflate(-zlib.MAX_WBITS),
    BZIP2: bz2.BZ2Decompressor,
    LZMA: lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MOST_XZ_MEMORY),
}


def _directory(file: IO[bytes]) -> tuple[int, int, int]:
    """Where the directory begins, its size, and by how much all offsets are off (by what stands before)."""
    total = file.seek(0, 2)
    tail_at = max(0, total - END.size - LONGEST_COMMENT)
    file.seek(tail_at)
    tail = file.read()
    end_at = tail.rfind(b"PK\x05\x06")
    if end_at < 0 or len(tail) - end_at < END.size:
        raise OSError("the end of the zip archive is missing")
    size, offset = END.unpack_from(tail, end_at)[5:7]
    before = tail_at + end_at
    if end_at >= LOCATOR.size and tail.startswith(b"PK\x06\x07", end_at - LOCATOR.size):
        before -= LOCATOR.size + END64.size
        file.seek(max(0, before))
        head = file.read(END64.size)
        if not head.startswith(b"PK\x06\x06"):
            raise OSError("the end of the zip archive is damaged")
        size, offset = END64.unpack(head)[8:10]
    if size > before or offset > before:
        raise OSError("the directory of the archive is cut off")
    return before - size, size, before - size - offset


def _entry(fields: tuple[Any, ...], name: bytes, extra: bytes, shift: int) -> ZipEntry:
    _, _, _, flags, method, _, _, checksum, packed, size, *_, external, offset = fields
    problem = None
    try:
        size, packed, offset = _wide(extra, size, packed, offset)
    except (struct.error, ValueError):
        problem = "its sizes in the directory are damaged"
    if flags & ENCRYPTED:
        problem = "this member is encrypted"
    elif method not in DECODERS and method != STORED:
        called = f" ({METHODS[method]})" if method in METHODS else ""
        problem = f"its compression method {method}{called} is not supported; unpack it first"
    elif flags & PATCHED:
        problem = "it is a patch of another file"
    elif external >> 28 == SYMLINK:
        problem = "links and devices in archives are not followed"
    text = name.decode("utf-8", "surrogateescape") if flags & UTF8 else name.decode("cp437")
    return ZipEntry(
        text.split("\0")[0], method, flags, checksum, packed, size, max(0, offset + shift), problem
    )


def _wide(extra: bytes, *narrow: int) -> list[int]:
    """Sizes and offset, those that need 64 bits from the extra field."""
    at = 0
    while any(value == UNSET32 for value in narrow) and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == ZIP64_EXTRA:
            wide = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            return [next(wide, value) if value == UNSET32 else value for value in narrow]
        at += 4 + length
    return list(narrow)


class _FileSlice:
    """A stretch of a file that others read as well."""

    def __init__(self, file: IO[bytes], at: int, size: int) -> None:
        self._file, self._at, self._left = file, at, size

    def read(self, size: int = -1, /) -> bytes:
        wanted = min(self._left, CHUNK if size < 0 else size)
        self._file.seek(self._at)
        chunk = self._file.read(wanted)
        if wanted and not chunk:
            raise EOFError("the archive ends within it")
        self._at += len(chunk)
        self._left -= len(chunk)
        return chunk


class _CheckedStream:
    """What a member unpacks to; OSError at its end where that is not what the directory says."""

    def __init__(self, stream: ByteStream, entry: ZipEntry, budget: Budget | None) -> None:
        self._stream, self._entry, self._budget = stream, entry, budget
        self._size = self._checksum = 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._stream.read(size)
        self._size += len(chunk)
        self._checksum = zlib.crc32(chunk, self._checksum)
        if self._budget is not None:
            self._budget.add_unpacked(len(chunk))
        is_end = size != 0 and not chunk
        if self._size > self._entry.size or (is_end and self._size != self._entry.size):
            raise OSError("its size is not the one in the directory")
        if is_end and self._checksum != self._entry.checksum:
            raise OSError("its content differs from its checksum")
        return chunk
