"""The programs of ResNet-50 with a network of four narrow blocks: all they do in a tenth of the time."""

from __future__ import annotations

from pathlib import Path

from trainmark.runner.program.code import keep_code
from trainmark.workloads.resnet50.shared import recipe

STAGES = ((1, 32), (1, 64), (1, 64), (1, 64))


def copy_code(folder: Path) -> Path:
    """Copy what a rank runs, as a run of a suite does, with these stages; the folder goes on PYTHONPATH."""
    keep_code(folder)
    copy = folder / "trainmark" / "workloads" / "resnet50" / "shared" / "recipe.py"
    text = copy.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("STAGES = "))
    copy.write_text(text.replace(line, f"STAGES = {STAGES}"), encoding="utf-8")
    return folder


def build_here(patch) -> None:
    """Let the tests' own process make the same network."""
    patch.setattr(recipe, "STAGES", STAGES)
