"""`checksums.txt`: a line for every file of a set, in the form that `sha256sum --check` reads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainmark.data.files import whole_file
from trainmark.data.index import CHECKSUMS

CHUNK = 1 << 20
# Strict, so that every flipped byte of the list shows: lower case, two blanks.
LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n", re.DOTALL)


def line(checksum: str, path: str) -> bytes:
    return f"{checksum}  {path}\n".encode("utf-8", "surrogateescape")


def write_checksums(root: Path, sums: Mapping[str, str]) -> None:
    """By path, sorted."""
    with whole_file(root / CHECKSUMS) as file:
        for path in sorted(sums):
            file.write(line(sums[path], path))


def of_file(path: Path) -> str:
    summed = hashlib.sha256()
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            summed.update(view[:count])
    return summed.hexdigest()


def read(root: Path) -> Iterator[tuple[int, str, str]]:
    """The number of each line, the checksum and the path; both are "" where it is no such line."""
    with (root / CHECKSUMS).open("rb") as lines:
        for number, entry in enumerate(lines, 1):
            if match := LINE.fullmatch(entry):
                yield number, match[1].decode(), match[2].decode("utf-8", "surrogateescape")
            else:
                yield number, "", ""


def of_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
