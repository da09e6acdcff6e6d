"""The transformers in frameworks with environments of their own: they conform and resume exactly."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import trainmark
from trainmark.environments import standing
from trainmark.runner.conform import conforming
from trainmark.runner.program import frameworks
from trainmark.workloads import registry

pytestmark = pytest.mark.usefixtures("installed_environments")

FRAMEWORKS = ("mindspore", "oneflow", "paddle")
in_each = pytest.mark.parametrize("name", FRAMEWORKS)


def interpreter(name: str) -> str:
    python = frameworks.interpreter_of(name)
    if python is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")
    return str(python)


@cache
def shown(name: str) -> dict[str, Any]:
    program = Path(__file__).with_name("checkpointed_gpt2.py")
    environment = {"PYTHONPATH": str(Path(trainmark.__file__).parents[1]), "OMP_NUM_THREADS": "2"}
    command = [interpreter(name), str(program), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@in_each
@pytest.mark.parametrize("workload", ["gpt2", "bert"])
def test_it_trains_the_same_transformer_in_micro_batches_on_two_ranks(name, workload):
    python, family = interpreter(name), registry.find(workload)
    variant = conforming.variant_of(family, "accumulate 2")
    command = conforming.program(family, name, python, variant, "cpu")
    check = conforming.checked(family, command, 2, variant, stop_asked=lambda: False)
    assert check.passed, check


@in_each
def test_it_trains_the_same_gpt2_in_whole_batches_on_one_rank(name):
    python, family = interpreter(name), registry.find("gpt2")
    variant = conforming.variant_of(family, "")
    command = conforming.program(family, name, python, variant, "cpu")
    check = conforming.checked(family, command, 1, variant, stop_asked=lambda: False)
    assert check.passed, check


@in_each
def test_a_training_resumes_bit_for_bit(name):
    facts = shown(name)
    assert facts["resumed"] == facts["straight"]
    assert facts["before"][0] > facts["before"][1] > facts["straight"][0] > facts["straight"][1]


@in_each
def test_an_evaluation_leaves_padding_out(name):
    loss, labels = shown(name)["padded"]
    assert labels == 16
    assert 0 < loss / labels < 7


@in_each
def test_a_training_reports_what_was_on(name):
    features = shown(name)["features"]
    assert set(features) == {"attention", "compiled", "optimizer", "sharding", "recompute"}
    assert features["attention"] == "written out"
