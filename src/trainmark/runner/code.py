"""The code that a run measures, copied into it: a run resumed next week measures what it measured today."""

from __future__ import annotations

import shutil
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# A measured program gets the probe and its workload on its path, and nothing else of ours.
PARTS = ("__init__.py", "probe.py", "workloads")


def keep_code(folder: Path) -> None:
    if folder.exists():
        return
    part = folder.with_name(".code.part")
    shutil.rmtree(part, ignore_errors=True)
    for name in PARTS:
        origin, copy = PACKAGE / name, part / PACKAGE.name / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy)
    part.rename(folder)
