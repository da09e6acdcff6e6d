"""The digest of the code that a verdict or a fit is about."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trainmark.workloads.registry import FOLDER, Family

SUFFIXES = (".py", ".json")
COMMON = "common"  # what the programs of all families share


def code_digest(family: Family, framework: str, folder: Path | None = None) -> str:
    """Hash the program of one framework with what it shares with others, but not their own files.

    `folder` is a copy of the family's folder in the code of a run, the folder itself where none is given.
    """
    workloads = folder.parents[family.package.count(".")] / "trainmark" / "workloads" if folder else FOLDER
    others = {*family.frameworks} - {framework}
    digest = hashlib.sha256()
    shared = [workloads / name for name in (COMMON, *family.workload.shares)]
    for root in (folder or family.folder, *shared):
        for file in sorted(root.rglob("*")):
            # An empty `__init__.py` may have been added to the copy of a folder that is no package.
            if file.suffix in SUFFIXES and file.stem not in others and (content := file.read_bytes()):
                digest.update(str(file.relative_to(root)).encode())
                digest.update(content)
    return digest.hexdigest()[:16]
