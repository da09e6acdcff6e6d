"""The transformers in TensorFlow and MXNet, in their own environments: they conform and resume exactly."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import trainmark
from trainmark.runner.conform import conforming
from trainmark.runner.program import frameworks
from trainmark.workloads import registry

pytestmark = pytest.mark.usefixtures("installed_environments")

BOTH = ("tensorflow", "mxnet")


def interpreter(name: str) -> str:
    python = frameworks.interpreter_of(name)
    if python is None:
        pytest.skip(f"{name} is not installed; `trainmark frameworks install {name}` installs it")
    return str(python)


@pytest.mark.parametrize(
    ("framework", "workload", "ranks", "label"),
    [
        ("tensorflow", "gpt2", 2, "accumulate 2"),
        ("tensorflow", "bert", 1, ""),
        ("mxnet", "gpt2", 2, "accumulate 2"),
        ("mxnet", "bert", 1, ""),
        ("mxnet", "bert", 2, "adamw"),
    ],
)
def test_it_trains_the_same_transformer(framework, workload, ranks, label):
    python, family = interpreter(framework), registry.find(workload)
    variant = conforming.variant_of(family, label)
    command = conforming.program(family, framework, python, variant, "cpu")
    check = conforming.checked(family, command, ranks, variant, stop_asked=lambda: False)
    assert check.passed, check


def run_program(name: str, *words: str) -> dict[str, Any]:
    program = Path(__file__).with_name("transformer_program.py")
    environment = {"PYTHONPATH": str(Path(trainmark.__file__).parents[1]), "OMP_NUM_THREADS": "2"}
    command = [interpreter(name), str(program), name, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture(scope="module")
def shown(installed_environments) -> dict[str, Any]:
    """What each of the two that is installed printed."""
    words = {"tensorflow": ["amp"], "mxnet": []}
    here = [name for name in BOTH if frameworks.interpreter_of(name)]
    return {name: run_program(name, *words[name]) for name in here}


@pytest.mark.parametrize("name", BOTH)
def test_a_training_resumes_bit_for_bit(name, shown):
    interpreter(name)
    before, straight, resumed, _ = shown[name]["resumed"]
    assert straight == resumed
    assert before[0] > before[1] > straight[0] > straight[1]


@pytest.mark.parametrize("name", BOTH)
def test_an_evaluation_leaves_padding_out(name, shown):
    interpreter(name)
    padded, alone = shown[name]["resumed"][3]
    assert padded[1] == alone[1] == 16
    assert padded[0] == pytest.approx(alone[0], rel=1e-5)


def test_an_overflow_in_tensorflow_moves_nothing_and_halves_the_loss_scale(shown):
    interpreter("tensorflow")
    rest, same, _ = shown["tensorflow"]["overflow"]
    assert same
    assert rest == {"adam_step": 0.0, "scale": 2.0**119, "good_steps": 0.0}


def test_a_step_without_overflow_in_tensorflow_counts(shown):
    interpreter("tensorflow")
    _, _, rest = shown["tensorflow"]["overflow"]
    assert (rest["adam_step"], rest["good_steps"]) == (1.0, 1.0)
