"""The workloads a suite may name, found where they lie: a new framework is a new file and no change here."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "workloads"


@cache
def frameworks(workload: str) -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in (FOLDER / workload).glob("*.py") if p.stem != "__init__"))


@cache
def built_in() -> tuple[str, ...]:
    return tuple(sorted(p.name for p in FOLDER.iterdir() if (p / "shared").is_dir()))


def module(workload: str, framework: str) -> str:
    return f"trainmark.workloads.{workload}.{framework}"
