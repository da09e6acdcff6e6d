"""Programs with one fault each, profiled by `trainmark explain`: the fault is named first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planted_profiles import forget_unprofiled_steps

torch = pytest.importorskip("torch", reason="the programs train with PyTorch, which is not installed here")

PLANTED = Path(__file__).parent / "planted"
HANG_SECONDS = 300  # far above what a run takes; a test that meets it hangs
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")


def trainmark(folder: Path, *words: str) -> str:
    """One thread a program: two cores shared by more threads wait for each other most of the time."""
    command = [sys.executable, "-m", "trainmark", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def profile(folder: Path, script: str, *words: str, steps: str = "2") -> dict:
    """Explain a program of ours, in the run `it`."""
    program = (sys.executable, str(PLANTED / script), *words)
    counted = ("--steps", "4", "--warmup", "1", "--profile-steps", steps)
    return json.loads(trainmark(folder, "explain", "--name", "it", *counted, "--json", "--", *program))


def of_profiled_steps(folder: Path) -> dict:
    """Explain `it` anew by its profiled steps alone: a busy machine cannot refuse their shares."""
    (place,) = folder.glob("runs/it/trials/*/01/profile")
    forget_unprofiled_steps(place)
    shutil.rmtree(folder / "runs/it/explain")
    return json.loads(trainmark(folder, "explain", "it", "--json"))


@pytest.fixture(scope="module")
def sleeping(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("sleeping")
    profile(folder, "sleeping_loader.py", "--device", "cpu", "--batch", "1")
    return of_profiled_steps(folder)


def test_a_loader_that_sleeps_is_named_first(sleeping):
    assert sleeping["agreement"]["refusal"] is None
    first = sleeping["advice"][0]
    assert first["cause"] == "loader" and first["gain"] > 100
    assert "waits for the next batch" in first["sentence"]


def test_the_line_to_type_is_in_the_words_of_the_programs_framework(sleeping):
    assert "DataLoader" in sleeping["advice"][0]["how"]


def test_the_time_that_the_loader_sleeps_is_idle_for_its_sake(sleeping):
    """It sleeps 0.2 s a step, whatever else the machine does."""
    (idle,) = (part for part in sleeping["idle"] if part["cause"] == "loader")
    assert idle["nanoseconds"] >= sleeping["steps"] * 0.19e9
    assert "sleep at" in idle["evidence"][0] and "sleeping_loader.py" in idle["evidence"][0]


def test_products_of_a_program_that_nobody_described_have_the_floor_of_their_precision(sleeping):
    products = [part for part in sleeping["classes"] if part["flop"]]
    assert sleeping["peaks"]["flops"] and products
    for part in products:
        assert part["floor"] >= 1e9 * part["flop"] / sleeping["peaks"]["flops"]


@needs_gpu
@pytest.mark.parametrize(
    "script, cause",
    [
        ("sleeping_loader.py", "loader"),
        ("item_every_step.py", "synchronisation"),
        ("tiny_batches.py", "launch"),
        ("wrong_layout.py", "layout"),
        ("single_precision.py", "precision"),
        ("unfused_optimizer.py", "optimiser"),
    ],
)
def test_a_planted_cause_is_named_first_on_a_gpu(tmp_path, script, cause):
    explanation = profile(tmp_path, script, "--device", "cuda", "--steps", "100", steps="5")
    assert explanation["agreement"]["refusal"] is None, explanation["agreement"]
    causes = [advice["cause"] for advice in explanation["advice"]]
    assert causes and causes[0] == cause, causes


@needs_gpu
def test_a_program_without_a_fault_has_none_of_the_planted_causes_on_a_gpu(tmp_path):
    explanation = profile(tmp_path, "clean.py", "--device", "cuda", "--steps", "100", steps="5")
    planted = {"loader", "synchronisation", "launch", "layout", "precision", "optimiser"}
    named = [(advice["cause"], advice["sentence"]) for advice in explanation["advice"]]
    assert planted.isdisjoint(cause for cause, _ in named), named


@needs_gpu
def test_an_item_in_the_step_is_named_by_its_line(tmp_path):
    explanation = profile(tmp_path, "item_every_step.py", "--device", "cuda", "--steps", "100", steps="5")
    (idle,) = (part for part in explanation["idle"] if part["cause"] == "synchronisation")
    assert any("item_every_step.py" in line for line in idle["evidence"]), idle["evidence"]
