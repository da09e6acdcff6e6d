"""The code that a run measures, copied into it: a run resumed next week measures what it measured today."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from trainmark.runner.program.ways_in import make_ways_in
from trainmark.workloads.registry import Family

PACKAGE = Path(__file__).resolve().parents[2]
# A measured program gets these on its path, and nothing else of ours.
PARTS = ("__init__.py", "probe.py", "callbacks", "inside", "workloads")


def keep_code(folder: Path, families: Iterable[Family] = ()) -> None:
    """Copy the probe and the built-in workloads, and each of these families that lies elsewhere."""
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
    for family in families:
        if not family.folder.is_relative_to(PACKAGE):
            _keep_family(family, part)
    make_ways_in(part)
    part.rename(folder)


def _keep_family(family: Family, root: Path) -> None:
    """As the same package, whose parents are empty: a family imports nothing else of its distribution."""
    place = root.joinpath(*family.package.split("."))
    if place.exists():
        return
    shutil.copytree(family.folder, place, ignore=shutil.ignore_patterns("__pycache__"))
    for parent in [place, *place.parents][: len(family.package.split("."))]:
        (parent / "__init__.py").touch()


def family_folder(code: Path, family: Family) -> Path:
    """Return where the copy of a family lies in a run's code."""
    return code.joinpath(*family.package.split("."))
