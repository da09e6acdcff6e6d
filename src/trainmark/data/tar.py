"""The members of a tar, or of a tar within a tar, by their places; what is damaged is told, not passed over.

Python's `tarfile` ends without a word at a bad header in the middle; this walk goes on at the next good one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

BLOCK = 512
MAGIC, MAGIC_AT = b"ustar", 257
CHECKSUM = slice(148, 156)
PLAIN = b"0\0" + b"7"
LONG_NAME, PAX = b"L", b"x"
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


@dataclass(frozen=True)
class TarHeader:
    name: str
    kind: bytes
    size: int


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
        if head.kind in (LONG_NAME, PAX):
            content = os.pread(fd, min(size, LONGEST_NAME), offset)
            if head.kind == LONG_NAME:
                long_name = content.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                long_name, long_size = _pax(content)
        else:
            name, size = long_name or head.name, long_size if long_size >= 0 else size
            if head.kind in PLAIN:
                yield TarEntry(name, offset, min(size, end - offset), whole=offset + size <= end)
            if offset + size > end:
                yield TarDamage(at, f"the tar ends within {name}, after {end - offset:,} of {size:,} bytes")
                return
            last, long_name, long_size = name, "", -1
        at = offset + -(-size // BLOCK) * BLOCK
    yield TarDamage(min(at, end), f"the tar ends after {last}, without its end mark")


def header(block: bytes) -> TarHeader | None:
    """What the block says, or None where its checksum or a number in it is wrong."""
    if len(block) < BLOCK:
        return None
    stated, size = _number(block[CHECKSUM]), _number(block[124:136])
    # The checksum's own field counts as blanks; old tars summed signed bytes.
    unsigned = sum(block) - sum(block[CHECKSUM]) + 8 * 0x20
    high = sum(byte >= 0x80 for byte in block) - sum(byte >= 0x80 for byte in block[CHECKSUM])
    if stated is None or size is None or stated not in (unsigned, unsigned - 256 * high):
        return None
    name = _text(block[:100])
    if block[MAGIC_AT : MAGIC_AT + 6] == MAGIC + b"\0" and (prefix := _text(block[345:500])):
        name = f"{prefix}/{name}"
    return TarHeader(name, block[156:157], size)


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


def _number(field: bytes) -> int | None:
    """Octal digits, or a binary number where the first bit is set, as GNU tar writes large ones."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    digits = field.strip(b"\0 ")
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        return None


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


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
