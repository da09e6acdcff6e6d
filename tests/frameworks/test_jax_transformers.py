"""The transformers in JAX, in its own environment: they conform, resume exactly and survive an overflow."""

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


def interpreter() -> str:
    python = frameworks.interpreter_of("jax")
    if python is None:
        pytest.skip("jax is not installed; `trainmark frameworks install jax` installs it")
    return str(python)


@pytest.mark.parametrize(
    ("name", "ranks", "label"),
    [("gpt2", 2, "accumulate 2"), ("llama", 2, "fsdp, accumulate 2"), ("bert", 1, "")],
)
def test_it_trains_the_same_transformer(name, ranks, label):
    python, family = interpreter(), registry.find(name)
    variant = conforming.variant_of(family, label)
    command = conforming.program(family, "jax", python, variant, "cpu")
    check = conforming.checked(family, command, ranks, variant, stop_asked=lambda: False)
    assert check.passed, check


@pytest.fixture(scope="module")
def shown(installed_environments) -> dict[str, Any]:
    program = Path(__file__).with_name("jax_transformer_program.py")
    environment = {
        "PYTHONPATH": str(Path(trainmark.__file__).parents[1]),
        "XLA_FLAGS": "--xla_backend_optimization_level=0",  # compiling is all that takes time here
    }
    done = subprocess.run([interpreter(), program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_a_training_resumes_bit_for_bit(shown):
    before, straight, again, _ = shown["resumed"]
    assert straight == again
    assert before[0] > before[1] > straight[0] > straight[1]


def test_an_evaluation_leaves_padding_out(shown):
    loss, labels = shown["resumed"][3]
    assert labels == 16
    assert 0 < loss / labels < 7


def test_a_loop_over_the_layers_trains_the_same(shown):
    assert shown["scanned"] == pytest.approx(shown["resumed"][0], rel=1e-6)


def test_an_overflow_moves_nothing_and_halves_the_loss_scale(shown):
    rest, same, _ = shown["overflow"]
    assert same
    assert rest == {"adam_step": 0.0, "scale": 2.0**119, "good_steps": 0.0}


def test_a_step_without_overflow_counts(shown):
    _, _, rest = shown["overflow"]
    assert (rest["adam_step"], rest["good_steps"]) == (1.0, 1.0)
