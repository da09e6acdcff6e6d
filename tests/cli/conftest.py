"""The command as people call it, on runs whose figures are chosen."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from fabricated_runs import CREATED, fabricate


@pytest.fixture(scope="session")
def fabricated(tmp_path_factory) -> Path:
    """Every file of a trial is synced to the disk: made once, copied often."""
    folder = tmp_path_factory.mktemp("fabricated")
    fabricate(folder, "failed", {"1n1g": [None, None]}, created=CREATED - 60)
    fabricate(folder, "before", {"1n1g": [100.0, 101, 102, 99, 100.5, 101.5], "1n2g": [190.0, None]})
    fabricate(
        folder,
        "after",
        {"1n1g": [110.0, 111, 112, 109, 110.5, 111.5]},
        created=CREATED + 60,
        skipped=[("pytorch-fp32-b32-1n8g", "needs 8 CUDA devices a node; this machine has 1")],
    )
    return folder


@pytest.fixture
def runs(fabricated, tmp_path) -> Path:
    """`before`, `after` (which is the latest) and `failed` (where every trial crashed), in ./runs."""
    return shutil.copytree(fabricated, tmp_path / "runs")
