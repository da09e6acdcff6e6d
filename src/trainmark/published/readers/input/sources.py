"""Where logs come from: files, folders, globs, archives, standard input. Each is read once, as a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainmark.published.readers.input.archives import LogOrRefusal, unpacked
from trainmark.published.readers.input.refusal import Refusal, SourceError, naming
from trainmark.regular_file import open_regular

GLOB_MARKS = frozenset("*?[")


def sources(paths: Sequence[str]) -> Iterator[LogOrRefusal]:
    """Every log under these paths, in a stable order; `-` is standard input, a glob may stand for many."""
    for path in paths:
        try:
            with naming(path):
                yield from _at(path)
        except SourceError as error:
            yield Refusal(path, str(error))


def _at(path: str) -> Iterator[LogOrRefusal]:
    if path == "-":
        yield from unpacked("-", sys.stdin.buffer)
        return
    matches = [Path(path)] if Path(path).exists() else _matching(path)
    if not matches:
        yield Refusal(path, f"{path}: there is no such file or folder.")
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
        yield Refusal(str(path), f"{path}: {error.strerror}{hint}.")
        return
    with stream:
        yield from unpacked(str(path), stream)
