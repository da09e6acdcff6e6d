"""A gzip'd tar of plain files: written the same each time, and read without trust in anything that it says.

Only what this module writes is read: USTAR headers of regular files, in one gzip stream, to the end. Links,
devices, folders, PAX and GNU extensions do not occur and are refused by name.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainmark.base.files import open_regular
from trainmark.store.manifest import PackError

BLOCK = 512
CHUNK_BYTES = 1 << 16
LEVEL = 6
# Of the first bytes, when nearly nothing has been read, a ratio says nothing.
RATIO_FROM_BYTES = 16 << 20
KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.DIRTYPE: "a folder",
}


class UnpackedSizeError(PackError):
    """More than `total_bytes` of the limits."""


@dataclass(frozen=True)
class UnpackLimits:
    """What a packed file may unpack to, at most."""

    members: int = 200_000
    member_bytes: int = 1 << 30
    total_bytes: int = 8 << 30
    ratio: float = 300.0
    """Unpacked ÷ packed bytes: logs of equal lines come to 200, and gzip cannot exceed 1,032."""


LIMITS = UnpackLimits()


def write(out: BinaryIO, files: Iterable[tuple[str, BinaryIO, int]]) -> None:
    """Write members of given names, contents and sizes; the same ones give the same bytes."""
    # No file name and no time in the header of gzip.
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=LEVEL, mtime=0) as packed:
        for name, content, size in files:
            packed.write(_header(name, size))
            _copy(content, packed, size, name)
            packed.write(bytes(-size % BLOCK))
        packed.write(bytes(2 * BLOCK))


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    try:
        return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")
    except ValueError as error:
        raise PackError(f"{name} cannot be packed: {error}.") from error


def _copy(content: BinaryIO, out: gzip.GzipFile, size: int, name: str) -> None:
    left = size
    while left and (chunk := content.read(min(left, CHUNK_BYTES))):
        out.write(chunk)
        left -= len(chunk)
    if left:
        raise PackError(f"{name} became shorter while it was packed; pack again when nothing writes to it.")


@dataclass(frozen=True)
class PackMember:
    """A member whose content must be read before the next one."""

    name: str
    size: int
    content: Iterator[bytes]


def read_members(path: Path, limits: UnpackLimits = LIMITS) -> Iterator[PackMember]:
    """Yield the members; PackError where the file is no such archive, is cut short, or exceeds a limit."""
    try:
        file = open_regular(path)
    except OSError as error:
        raise PackError(f"{path}: {error.strerror}.") from error
    with file:
        stream = _Unpacked(file, path, limits)
        for number in range(limits.members + 1):
            header = stream.exactly(BLOCK)
            if not any(header):
                stream.require_end()
                return
            if number == limits.members:
                raise PackError(f"{path} has more than {limits.members:,} members; it was not unpacked.")
            info = _info(header, path, limits)
            content = stream.pieces(info.size)
            yield PackMember(info.name, info.size, content)
            for _ in content:  # what the caller did not read
                pass
            if any(stream.exactly(-info.size % BLOCK)):
                raise PackError(f"{path} is damaged: there is something between its members.")


def _info(header: bytes, path: Path, limits: UnpackLimits) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeError, ValueError) as error:
        raise PackError(f"{path} is damaged or no packed run: {error}.") from error
    if info.type != tarfile.REGTYPE:
        kind = KINDS.get(info.type, "no plain file")
        raise PackError(f"{path}: the member '{info.name:.200}' is {kind}; it was not unpacked.")
    if not 0 <= info.size <= limits.member_bytes:
        limit = f"{limits.member_bytes >> 20:,} MiB"
        raise PackError(f"{path}: the member '{info.name:.200}' is larger than {limit}; it was not unpacked.")
    return info


class _Unpacked:
    """What a gzip file holds, in order, within the limits."""

    def __init__(self, file: BinaryIO, path: Path, limits: UnpackLimits) -> None:
        self._file, self._path, self._limits = file, path, limits
        self._inflate = zlib.decompressobj(wbits=31)
        self._ready = b""
        self._taken = self._packed = 0

    def exactly(self, size: int) -> bytes:
        return b"".join(self.pieces(size))

    def pieces(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._ready and not self._fill():
                raise PackError(f"{self._path} is cut short; pack or send it again.")
            piece, self._ready = self._ready[:size], self._ready[size:]
            size -= len(piece)
            yield piece

    def require_end(self) -> None:
        """Nothing but zeros may follow, and nothing at all after the gzip stream."""
        while self._ready or self._fill():
            if any(self._ready):
                raise PackError(f"{self._path} is damaged: something follows the last member.")
            self._ready = b""
        if not self._inflate.eof:
            raise PackError(f"{self._path} is cut short; pack or send it again.")
        if self._inflate.unused_data or self._file.read(1):
            raise PackError(f"{self._path} is damaged: something follows the packed run.")

    def _fill(self) -> bool:
        """Unpack the next bytes, CHUNK_BYTES at most; False at the end of the stream."""
        while not self._ready and not self._inflate.eof:
            source = self._inflate.unconsumed_tail
            if not source:
                source = self._file.read(CHUNK_BYTES)
                self._packed += len(source)
                if not source:
                    return False
            try:
                self._ready = self._inflate.decompress(source, CHUNK_BYTES)
            except zlib.error as error:
                raise PackError(f"{self._path} is damaged or no packed run: {error}.") from error
            self._count(len(self._ready))
        return bool(self._ready)

    def _count(self, size: int) -> None:
        self._taken += size
        if self._taken > self._limits.total_bytes:
            limit = f"{self._limits.total_bytes >> 20:,} MiB"
            raise UnpackedSizeError(f"{self._path} unpacks to more than {limit}; it was not unpacked.")
        if self._taken > RATIO_FROM_BYTES and self._taken > self._limits.ratio * self._packed:
            ratio = f"{self._limits.ratio:g} times its size"
            raise PackError(f"{self._path} unpacks to more than {ratio}; it was not unpacked.")
