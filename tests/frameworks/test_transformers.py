"""The transformers in every framework that is installed here, for real: they conform and resume exactly."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import trainmark
from trainmark.machine.frameworks.installed import standing
from trainmark.runner import conformance, inventory
from trainmark.workloads import registry

pytestmark = pytest.mark.usefixtures("installed_environments")

CHECKS = [
    *((name, "gpt2", 2, "accumulate 2") for name in registry.find("gpt2").frameworks if name != "pytorch"),
    *((name, "bert", 1, "") for name in registry.find("bert").frameworks if name != "pytorch"),
    ("jax", "llama", 2, "fsdp, accumulate 2"),
]
# What a CPU gets; on GPUs some have kernels of their own.
ATTENTION = {
    "jax": "xla",
    "mindspore": "written out",
    "mxnet": "interleaved_matmul_selfatt",
    "oneflow": "written out",
    "paddle": "written out",
    "pytorch": "scaled_dot_product_attention",
    "tensorflow": "written out",
}
LENGTH = 16
in_each = pytest.mark.parametrize("name", sorted(ATTENTION))
with_loss_scale = pytest.mark.parametrize("name", ["jax", "pytorch", "tensorflow"])


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Compiling is most of what takes time here: XLA leaves its optimizations out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield


def interpreter(name: str) -> str:
    python = inventory.interpreter_of(name)
    if python is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")
    return str(python)


@pytest.mark.parametrize(("name", "workload", "ranks", "label"), CHECKS)
def test_it_trains_the_same_transformer(name, workload, ranks, label):
    python, family = interpreter(name), registry.find(workload)
    variant = conformance.variant_of(family, label)
    command = conformance.program(family, name, python, variant, "cpu")
    check = conformance.checked(family, command, ranks, variant, stop_asked=lambda: False)
    assert check.passed, check


@cache
def shown(name: str) -> dict[str, Any]:
    """What one training printed, which several tests look at."""
    command = [interpreter(name), str(Path(__file__).with_name("transformer_program.py")), name]
    path = str(Path(trainmark.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@in_each
def test_a_training_resumes_bit_for_bit(name):
    losses = shown(name)["losses"]
    assert losses["resumed"] == losses["straight"]
    assert losses["before"][0] > losses["before"][1] > losses["straight"][0] > losses["straight"][1]


@in_each
def test_an_evaluation_leaves_padding_out(name):
    (loss, labels), first, second = shown(name)["evaluations"]
    assert (labels, first[1], second[1]) == (2 * LENGTH, LENGTH, LENGTH)
    assert first[0] + second[0] == pytest.approx(loss, rel=1e-5)


@in_each
def test_a_training_reports_what_was_on(name):
    features = shown(name)["features"]
    assert {"compiled", "optimizer", "sharding", "recompute"} < set(features)
    assert features["attention"] == ATTENTION[name]


def test_a_loop_over_the_layers_trains_the_same_in_jax():
    assert shown("jax")["scanned"] == pytest.approx(shown("jax")["losses"]["before"], rel=1e-6)


@with_loss_scale
def test_an_overflow_moves_nothing_and_halves_the_loss_scale(name):
    overflow = shown(name)["overflow"]
    assert overflow["moved"] == []
    assert (overflow["rest"]["adam_step"], overflow["rest"]["scale"]) == (0, 2.0**119)


@with_loss_scale
def test_a_step_without_overflow_counts(name):
    assert shown(name)["overflow"]["rest_of_good_step"]["adam_step"] == 1
