"""Our PyTorch models are those of the `transformers` package: logits, loss, gradients, sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# Rounding of float64. The library's Llama norms and rotates in float32; our plain softmax is float32.
FLOAT64, FLOAT32 = 1e-12, 1e-5
TOLERANCE = {("gpt2", "stock"): FLOAT64, ("bert", "stock"): FLOAT64}
FAMILIES = ("gpt2", "bert", "llama")


@pytest.fixture(scope="module")
def compared() -> Any:
    folder = Path(os.environ.get("TRAINMARK_TEST_TRANSFORMERS") or ROOT / ".venv-transformers")
    if not (folder / "transformers").is_dir():
        pytest.skip(f"there is no transformers package in {folder} (`make transformers` installs it)")
    program = Path(__file__).with_name("compare.py")
    path = os.pathsep.join((str(folder), str(ROOT / "src")))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    output = subprocess.run(
        [sys.executable, str(program)], env=environment, check=True, stdout=subprocess.PIPE, timeout=300
    ).stdout
    return json.loads(output)


@pytest.mark.parametrize("engine", ["stock", "plain"])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients_are_those_of_the_library(compared: Any, family: str, engine: str) -> None:
    errors = compared[family]["errors"][engine]
    limit = TOLERANCE.get((family, engine), FLOAT32)
    assert max(errors["logits"], errors["gradients"]) < limit


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_of_a_step_is_the_librarys(compared: Any, family: str) -> None:
    assert all(errors["loss"] < 1e-6 for errors in compared[family]["errors"].values())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_size_has_as_many_parameters_as_the_librarys(compared: Any, family: str) -> None:
    assert all(own == theirs for own, theirs in compared[family]["parameters"].values())
