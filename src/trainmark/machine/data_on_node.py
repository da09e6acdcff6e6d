"""A dataset as it lies on one node: sent as text, run by that node's Python (3.8 or newer).

Number and bytes of its files, a hash of their names and sizes, and, if asked to be deep, one of what is in
them. The question is one JSON object on standard input, the answer one on standard output.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    asked = json.load(sys.stdin)
    print(json.dumps(dataset(asked["path"], asked["deep"])))


def dataset(path: str, deep: bool) -> dict[str, Any]:
    root = Path(path).expanduser()
    facts = {"path": path, "exists": root.exists(), "files": 0, "bytes": 0, "names": None, "contents": None}
    try:
        return {**facts, **summed_up(root, deep)} if facts["exists"] else facts
    except OSError as error:
        return {**facts, "trouble": str(error)}


def summed_up(root: Path, deep: bool) -> dict[str, Any]:
    names, contents = hashlib.sha256(), hashlib.sha256()
    files, size = files_below(root), 0
    for file in files:
        name = str(file.relative_to(root.parent if root.is_file() else root))
        length = file.stat().st_size
        size += length
        names.update(f"{name}\0{length}\n".encode("utf-8", "surrogateescape"))
        if deep:
            contents.update(name.encode("utf-8", "surrogateescape") + file_digest(file))
    return {
        "files": len(files),
        "bytes": size,
        "names": names.hexdigest()[:16],
        "contents": contents.hexdigest() if deep else None,
    }


def files_below(root: Path) -> list[Path]:
    """All files, links followed, in the order of their paths; a folder that holds itself is entered once."""
    if root.is_file():
        return [root]
    seen: set[tuple[int, int]] = set()
    files = []
    for folder, below, names in os.walk(str(root), followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            below[:] = []
            continue
        seen.add((status.st_dev, status.st_ino))
        files += [path for path in (Path(folder, name) for name in names) if path.is_file()]
    return sorted(files)


def file_digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.digest()
