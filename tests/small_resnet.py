"""ResNet-50 with a few narrow blocks in place of sixteen: all that its programs do in a tenth of the time."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import pytest

from trainmark.runner.command import PACKAGE, keep_code
from trainmark.workloads.registry import Family
from trainmark.workloads.resnet50.shared import recipe, reference, tensors

WORKLOAD = Path("trainmark/workloads/resnet50")
PYTORCH = Path("trainmark/workloads/common/frameworks/pytorch.py")
STAGES = "((3, 64), (4, 128), (6, 256), (3, 512))"
LAST_STAGE = '("blocks.13.", "blocks.14.", "blocks.15.")'


@dataclass(frozen=True)
class Network:
    """Blocks and width of each stage; features of the last stage's blocks begin small."""

    stages: tuple[tuple[int, int], ...]
    last_stage: tuple[str, ...] = ()

    def feeds_classifier(self, name: str) -> bool:
        return name.startswith(self.last_stage) and ("norm3" in name or "shortcut.norm" in name)


# Without a stride, with one, and after small features: enough to show every error of a framework.
THREE_BLOCKS = Network(((1, 8), (2, 16)), ("blocks.1.", "blocks.2."))
# Learns a few images by heart in a few epochs.
FOUR_STAGES = Network(((1, 32), (1, 64), (1, 64), (1, 64)))


def copy_code(network: Network, folder: Path, families: Iterable[Family] = ()) -> Path:
    """Copy what a rank runs, as a run of a suite does, with this network; the folder goes on PYTHONPATH."""
    keep_code(folder, families)
    return put_in(network, folder)


def copy_package(network: Network, folder: Path) -> Path:
    """Copy all of the package with this network, for a `trainmark run` with the folder on its PYTHONPATH."""
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return put_in(network, folder)


def put_in(network: Network, folder: Path) -> Path:
    edit(folder / WORKLOAD / "shared" / "recipe.py", STAGES, str(network.stages))
    edit(folder / WORKLOAD / "shared" / "tensors.py", LAST_STAGE, str(network.last_stage))
    # A product of halves of this side takes twenty seconds on a CPU that has no instructions for them.
    edit(folder / PYTORCH, "else 1024", "else 128")
    return folder


def edit(path: Path, right: str, wrong: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"{path.name} no longer says {right!r} just once"
    path.write_text(text.replace(right, wrong), encoding="utf-8")


def build_here(network: Network, patch: pytest.MonkeyPatch) -> None:
    """Let the tests' own process make this network, and compute the reference of it that is not shipped."""
    patch.setattr(tensors, "IMAGE_SIZE", 32)
    patch.setattr(recipe, "STAGES", network.stages)
    patch.setattr(tensors, "_feeds_classifier", network.feeds_classifier)
    trained = (shape for name, shape in tensors.shapes().items() if not tensors.is_statistic(name))
    patch.setattr(recipe, "PARAMETERS", sum(map(prod, trained)))
    patch.setattr(reference, "expected", cache(reference.observe))
    patch.setattr(reference, "_given", cache(reference._given.__wrapped__))
