"""Streams that are read once, forward, and unpacked in bounded steps within a budget.

The budget counts what is really read, over all members and levels of one input; what is beyond it, or
broken, is refused with a sentence and does not cost the other inputs.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from trainmark.base.errors import UserError


class SourceError(UserError):
    """The input cannot be read: where it is and why."""


@dataclass(frozen=True)
class SourceRefusal:
    """One input that was not read, and the sentence that says why."""

    name: str
    sentence: str


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn whatever is raised while one input is read into a SourceError that names it.

    The inputs come from anywhere, and neither the decompressors nor the readers promise which exceptions
    they raise of bytes that are no archive or no log; one input must not cost those beside it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        strerror = error.strerror if isinstance(error, OSError) else None
        reason = " ".join((strerror or str(error)).split()) or type(error).__name__
        raise SourceError(f"{name}: could not be read: {reason}.") from error


@dataclass(frozen=True)
class UnpackLimits:
    """What one input may unpack to, at most; the ratio counts from so many bytes."""

    members: int = 100_000
    total_bytes: int = 64 << 30
    ratio: int = 250  # logs compress 10 to 100 times; beyond this an archive is made to fill a disk
    ratio_from_bytes: int = 256 << 20


LIMITS = UnpackLimits()


@dataclass
class Budget:
    """The bytes read of one input, the bytes unpacked from them, and the members seen.

    `name` is what an excess is blamed on: the member that is being read.
    """

    name: str
    limits: UnpackLimits = LIMITS
    packed: int = 0
    unpacked: int = 0
    members: int = 0

    def add_unpacked(self, count: int) -> None:
        self.unpacked += count
        self.check()

    def add_member(self, name: str) -> None:
        self.members += 1
        self.name = name
        if self.members > (most := self.limits.members):
            raise SourceError(f"{name}: the archive has more than {most:,} members; the rest is not read.")
        self.check()

    def check(self) -> None:
        """Raise a SourceError where the input has been unpacked to more than it may."""
        if self.exceeded_by(0):
            raise SourceError(f"{self.name}: {self.limit}; the rest is not read.")

    def exceeded_by(self, more: int) -> bool:
        """Whether so many bytes more would be too many."""
        total, limits = self.unpacked + more, self.limits
        is_bomb = total > limits.ratio_from_bytes and total > limits.ratio * self.packed
        return is_bomb or total > limits.total_bytes

    @property
    def limit(self) -> str:
        limits = self.limits
        if limits.ratio * self.packed < limits.total_bytes:
            return f"the archive unpacks to more than {limits.ratio} times its size"
        return f"the archive unpacks to more than {limits.total_bytes >> 30} GiB"


CHUNK = 4 << 20
PACKED_CHUNK = 64 << 10
# What xz -9 needs, twice; a header may ask for 4 GiB.
MOST_XZ_MEMORY = 128 << 20
GZIP_WINDOW = 16 + zlib.MAX_WBITS


class ByteStream(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class JoinedStream:
    """What was read ahead, and the stream that it was read from, as one stream again."""

    def __init__(self, head: bytes, stream: ByteStream) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._stream.read(size)
        if size < 0 or size > len(self._head):
            taken, self._head = self._head, b""
            return taken + self._stream.read(-1 if size < 0 else size - len(taken))
        taken, self._head = self._head[:size], self._head[size:]
        return taken


class CountedStream:
    """The bytes of an input as they are stored; counts them into its budget."""

    def __init__(self, stream: ByteStream, budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._stream.read(size)
        self._budget.packed += len(chunk)
        return chunk


class DecompressedStream:
    """The content of a compressed stream, and of those with the same `magic` that follow it."""

    def __init__(
        self, stream: ByteStream, start: Callable[[], Any], budget: Budget, magic: bytes | None = None
    ) -> None:
        self._stream, self._start, self._budget, self._magic = stream, start, budget, magic
        self._decoder = start()
        self._input = b""
        self._failure: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        if self._failure is not None:
            raise self._failure
        try:
            content = b"" if size == 0 else self._next(CHUNK if size < 0 else min(size, CHUNK))
        except (OSError, EOFError, ValueError, MemoryError, zlib.error, lzma.LZMAError) as error:
            # What a decoder gives after it has failed once is not defined.
            self._failure = error
            raise
        self._budget.add_unpacked(len(content))
        return content

    def _next(self, size: int) -> bytes:
        while True:
            if self._decoder.eof and not self._begin_next():
                return b""
            if not self._input and self._decoder.needs_input:
                self._input = self._stream.read(PACKED_CHUNK)
                if not self._input:
                    raise EOFError("it ends before its end mark")
            taken, self._input = self._input, b""
            if content := bytes(self._decoder.decompress(taken, size)):
                return content

    def _begin_next(self) -> bool:
        """Start on the stream behind the one that ended; False at the end of the file."""
        if self._magic is None:
            return False
        rest = bytes(self._decoder.unused_data).lstrip(b"\0")
        while len(rest) < len(self._magic) and (more := self._stream.read(PACKED_CHUNK)):
            rest = (rest + more).lstrip(b"\0")
        if rest and not rest.startswith(self._magic):
            raise OSError("behind its end mark is something else")
        if rest:
            self._decoder, self._input = self._start(), rest
        return bool(rest)


class Inflate:
    """zlib with the interface of bz2 and lzma."""

    def __init__(self, window: int) -> None:
        self._zlib = zlib.decompressobj(window)

    def decompress(self, data: bytes, size: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, size)

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data


COMPRESSED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: Inflate(GZIP_WINDOW),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lambda: lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY),
}
