"""A checkout with a suite of a second, and runs whose figures are chosen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from fabricated_runs import fabricate

PROGRAM = """
from trainmark import probe

run = probe.start()
for _ in range(40):
    sum(range(20_000))
    run.step(samples=1)
run.end()
"""
STEADY = (100.0, 101.0, 102.0, 99.0, 100.5, 101.5)


@pytest.fixture
def checkout(tmp_path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    workload = json.dumps({"command": "{python} train.py", "name": "mine"})
    rules = "repeats: 2\nretries: 0\nwarmup: {steps: 5}\nmeasure: {steps: 30}\n"
    (tmp_path / "suite.yaml").write_text(f"workload: {workload}\n{rules}")
    (tmp_path / "failing.yaml").write_text(f"workload: {{command: 'exit 3', name: mine}}\n{rules}")
    return tmp_path


@pytest.fixture
def measured(checkout):
    """Writes a run as if it had been measured: its trials at `factor` of the usual rates."""

    def written(name: str, factor: float = 1.0, trials: int = 6) -> str:
        fabricate(checkout / "trainmark-runs", name, {"1n1g": [factor * rate for rate in STEADY[:trials]]})
        return f"trainmark-runs/{name}"

    return written
