"""A file that is being written: where it stands, what its records and all of it add up to."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

CHUNK = 1 << 20


class RecordOffset(NamedTuple):
    """A record in its shard: all of it, the picture in it, and zlib.crc32 of all of it.

    Where the shard cannot hold the picture in one piece, `whole` tells its place in the second file.
    """

    begin: int
    length: int
    offset: int
    size: int
    crc: int
    whole: RecordOffset | None = None


class ShardFile:
    """Appends, and sums up while it does; what is changed later is summed up by reading all again."""

    def __init__(self, file: BinaryIO, open_beside: Callable[[], ShardFile] | None = None) -> None:
        self._file, self._open_beside = file, open_beside
        self._beside: ShardFile | None = None
        self._sum = hashlib.sha256()
        self._rewritten = False
        self.position = 0

    def add(self, record: bytes, offset: int, size: int) -> RecordOffset:
        """Writes a record whose picture lies at `offset` in it."""
        begin = self.position
        self.write(record)
        return RecordOffset(begin, len(record), begin + offset, size, zlib.crc32(record))

    def add_in_pieces(self, record: bytes, picture: bytes) -> RecordOffset:
        """Writes a record that has its picture in pieces, and the picture into the second file."""
        if self._beside is None:
            assert self._open_beside is not None
            self._beside = self._open_beside()
        return self.add(record, 0, 0)._replace(whole=self._beside.add(picture, 0, len(picture)))

    @property
    def beside(self) -> ShardFile | None:
        """The second file, where one was needed."""
        return self._beside

    def write(self, content: bytes) -> None:
        self._file.write(content)
        if not self._rewritten:
            self._sum.update(content)
        self.position += len(content)

    def skip_to(self, position: int) -> None:
        """Zeros up to there, as a hole where the file system has holes."""
        if position > self.position:
            self._rewritten = True
            self._file.seek(position)
            self.position = position

    def rewrite(self, position: int, content: bytes) -> None:
        self._rewritten = True
        self._file.seek(position)
        self._file.write(content)
        self._file.seek(self.position)

    def finish(self) -> str:
        """The checksum, once nothing more is written."""
        self._file.truncate(self.position)
        self._file.flush()
        if self._rewritten:
            self._sum = hashlib.sha256()
            self._file.seek(0)
            while chunk := self._file.read(CHUNK):
                self._sum.update(chunk)
        return self._sum.hexdigest()
