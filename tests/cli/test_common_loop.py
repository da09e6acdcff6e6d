"""A family in a folder of its own whose program is driven by the loop that all families share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.events import Mark, RunEnd, RunStart, Step
from trainmark.events.stream import read

REGRESSION = Path(__file__).with_name("regression")
SUITE = """
workload: ./regression
framework: plain
device: cpu
repeats: 1
warmup: {steps: 2}
measure: {steps: 30}
"""
BY_EPOCHS = ("--data", "points", "--batch", "8", "--until", "error=0.05")


def program(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run it as a launcher would, from a folder where it and nothing else of the tests lies."""
    shutil.copytree(REGRESSION, folder / "regression", dirs_exist_ok=True)
    variables = {"PYTHONPATH": str(folder), "TRAINMARK_EVENTS": str(folder)}
    command = [sys.executable, "-m", "regression.plain", *words]
    return subprocess.run(
        command, env={**os.environ, **variables}, input=stdin, capture_output=True, text=True, timeout=60
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    done = program(folder, *BY_EPOCHS, "--checkpoints", str(folder / "checkpoints"))
    assert done.returncode == 0, done.stderr
    return folder


def test_a_suite_runs_it_under_its_own_unit(trainmark, tmp_path):
    shutil.copytree(REGRESSION, tmp_path / "regression", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "suite.yaml").write_text(SUITE)
    done = trainmark("run", "suite.yaml", "--name", "a", "--json")
    assert done.code == 0, done.err
    (result,) = json.loads(done.out)["results"]
    assert (result["workload"], result["throughput"]["unit"]) == ("regression", "points/s")


def test_it_trains_until_a_metric_is_low_enough_and_tells_the_facts_of_its_own_data(trained):
    events = list(read(trained / "rank0.jsonl"))
    start, end = events[0], events[-1]
    assert isinstance(start, RunStart) and isinstance(end, RunEnd)
    assert (start.unit, start.facts["training_points"], start.facts["steps_per_epoch"]) == ("points", 40, 5)
    assert (end.facts["reached"], end.facts["spoiled_points"]) == (True, [])
    ends = [e.facts for e in events if isinstance(e, Mark) and e.kind == "eval" and e.facts["state"] == "end"]
    assert [set(facts) for facts in ends] == [{"epoch", "state", "points", "error"}] * len(ends)
    errors = [facts["error"] for facts in ends]
    assert errors[-1] <= 0.05 < min(errors[:-1])
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert losses[-1] < losses[0] / 10


def test_it_goes_on_from_its_last_checkpoint(trained):
    (newest, *_) = sorted((trained / "checkpoints").iterdir(), reverse=True)
    done = program(trained, *BY_EPOCHS, "--checkpoints", str(trained / "checkpoints"))
    assert done.returncode == 0, done.stderr
    starts = [event for event in read(trained / "rank0.jsonl") if isinstance(event, RunStart)]
    assert starts[-1].facts["resumed_step"] == int(newest.name.split("-")[1])


def test_what_it_cannot_do_is_refused_and_questions_are_answered(tmp_path):
    done = program(tmp_path, "--precision", "tf32")
    assert (done.returncode, done.stderr[:13]) == (3, "refused: tf32")
    question = json.dumps({"arguments": ["--recipe", "none"], "world_size": 1}) + "\n"
    facts, answer = program(tmp_path, "--check", stdin=question).stdout.splitlines()
    assert json.loads(facts) == {"framework_version": "1.0"}
    assert json.loads(answer) == "there is no recipe 'none'; there are short, or a path."
