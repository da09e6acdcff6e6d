"""From paths to the clean lines of each log: files, folders, globs, standard input, archives.

A log is read once, as a stream of line-aligned blocks: no terminal codes, carriage returns or endless lines.
A carriage return ends a line, so every state of a progress bar is kept as a line of its own. A launcher's
tag (`[1,7]<stderr>:`) stays at the head of its line and nowhere else, for `by_rank` to part the ranks by.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.archives import Unpacked, unpacked
from trainmark.base.files import open_regular
from trainmark.base.streams import LIMITS, SourceError, SourceRefusal, naming

GLOB_MARKS = frozenset("*?[")


def sources(paths: Sequence[str]) -> Iterator[Unpacked]:
    """Every log under these paths, in a stable order; `-` is standard input, a glob may stand for many."""
    for path in paths:
        try:
            with naming(path):
                yield from _at_path(path)
        except SourceError as error:
            yield SourceRefusal(path, str(error))


def _at_path(path: str) -> Iterator[Unpacked]:
    if path == "-":
        yield from unpacked("-", sys.stdin.buffer, LIMITS)
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


def _file(path: Path) -> Iterator[Unpacked]:
    try:
        stream = open_regular(path)
    except OSError as error:
        hint = "; a pipe is read as `-`, standard input" if path.is_fifo() else ""
        yield SourceRefusal(str(path), f"{path}: {error.strerror}{hint}.")
        return
    with stream:
        yield from unpacked(str(path), stream, LIMITS)


# What is cut off an overlong line holds no figure, and keeps a pattern from scanning it again and again.
LONGEST_LINE = 32 << 10
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# In UTF-16 about every second byte of a log is NUL; a stray one in other text is not worth decoding for.
UTF16_NULS = 1 / 8

ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\n]*(?:\x07|\x1b\\)|[@-Z\\^_=>])")
DATE = rb"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
TAG = re.compile(DATE + rb"\[(?:\d+,)?(?P<rank>\d+)\]<std(?:out|err|diag)>: ?")
TAGGED = b"]<std"
RANK_TAG = b"[rank"
HEAD_TAG = re.compile(rb"\[rank(\d+)\]:(.*)", re.DOTALL)


@dataclass
class Cleaning:
    """What was found on the way; a line cut for its length counts as damaged."""

    damaged_lines: int = 0


def clean_blocks(chunks: Iterable[bytes], cleaning: Cleaning | None = None) -> Iterator[bytes]:
    """Blocks that end at line ends; a block with nothing to clean is passed on as it is.

    A chunk that has no line end, or nothing but NULs, gives an empty block: the caller may lose patience.
    """
    cleaning = cleaning or Cleaning()
    for block in _aligned(_decoded(chunks), cleaning):
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        if b"\x08" in block:
            block = block.replace(b"\x08", b"")
        yield _tags_at_heads(block) if TAGGED in block else block


def by_rank(block: bytes) -> list[tuple[int | None, bytes]]:
    """What each rank printed, without its tags; lines without one belong to None."""
    if RANK_TAG not in block:
        return [(None, block)]
    parts: dict[int | None, list[bytes]] = {}
    for line in block.splitlines(keepends=True):
        match = HEAD_TAG.match(line)
        rank, text = (int(match[1]), match[2]) if match else (None, line)
        parts.setdefault(rank, []).append(text)
    return [(rank, b"".join(lines)) for rank, lines in parts.items()]


def _decoded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 becomes UTF-8 where the file says or shows that it is; carriage returns become line ends."""
    decoder = None
    first = True
    for chunk in chunks:
        if first and chunk[:2] in UTF16_MARKS:
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        if first and chunk.startswith(codecs.BOM_UTF8):
            chunk = chunk[len(codecs.BOM_UTF8) :]
        first = False
        if b"\0" in chunk:
            if decoder is not None and chunk.count(b"\0") > len(chunk) * UTF16_NULS:
                chunk = decoder.decode(chunk).encode("utf-8", "replace")
            # Deleting NULs also turns ASCII in unmarked UTF-16, or appended to other text, into ASCII.
            chunk = chunk.translate(None, b"\0")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield chunk


def _aligned(chunks: Iterable[bytes], cleaning: Cleaning) -> Iterator[bytes]:
    """The same bytes cut at line ends; what comes after the head of an overlong line is dropped."""
    rest, inside_overlong = b"", False
    for chunk in chunks:
        if inside_overlong:
            end = chunk.find(b"\n")
            if end < 0:
                yield b""
                continue
            chunk, inside_overlong = chunk[end:], False
        end = chunk.rfind(b"\n") + 1
        if end:
            yield _shortened(rest + chunk[:end], cleaning)
            rest = chunk[end:]
        else:
            rest += chunk
            yield b""
        if len(rest) > LONGEST_LINE:
            rest, inside_overlong = rest[:LONGEST_LINE], True
            cleaning.damaged_lines += 1
    if rest:
        yield rest + b"\n"


def _shortened(block: bytes, cleaning: Cleaning) -> bytes:
    """Looking for one line end in each stretch costs nothing, as long as there is one."""
    if all(
        block.find(b"\n", at, at + LONGEST_LINE) >= 0
        for at in range(0, len(block) - LONGEST_LINE, LONGEST_LINE)
    ):
        return block
    lines = block.split(b"\n")
    cleaning.damaged_lines += sum(len(line) > LONGEST_LINE for line in lines)
    return b"\n".join(line[:LONGEST_LINE] for line in lines)


def _tags_at_heads(block: bytes) -> bytes:
    """A launcher tags every write: within a line, its own rank's tag goes, another's begins a new line."""
    lines = []
    for line in block.split(b"\n"):
        if TAGGED not in line:
            lines.append(line)
            continue
        untagged, *pieces = TAG.split(line)
        current = None
        for rank, text in zip(pieces[::2], pieces[1::2], strict=True):
            if rank == current:
                lines[-1] += text
            else:
                lines.append(b"[rank%s]:%s%s" % (rank, untagged, text))
            current, untagged = rank, b""
        if untagged:
            lines.append(untagged)
    return b"\n".join(lines)
