"""A run carries the verdict on the very code that it measures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark
from trainmark.runner import conformance
from trainmark.runner.conformance import ConformanceCheck, ConformanceVerdict, code_digest
from trainmark.workloads import registry

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

SUITE = """
framework: pytorch
device: cpu
batch_per_device: 2
image_size: 32
warmup: {steps: 1}
measure: {steps: 2}
repeats: 1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def keep_verdict(*checks: ConformanceCheck, code: str | None = None) -> None:
    digest = code or code_digest(registry.find("resnet50"), "pytorch")
    conformance.keep(
        ConformanceVerdict("pytorch", torch.__version__, sys.executable, "cpu", digest, "today", checks)
    )


def mark(folder: Path, name: str, *words: str) -> dict | None:
    done = CliRunner().invoke(trainmark, ["run", *words])
    assert done.exit_code == 0, done.output
    (facts,) = json.loads((folder / "runs" / name / "facts.json").read_text()).values()
    return facts["conformance"]


def test_a_run_is_marked_with_what_was_found_of_its_own_code_and_a_resumed_one_anew(folder):
    assert mark(folder, "a", "suite.yaml", "--name", "a") is None
    keep_verdict(ConformanceCheck(1, "NCHW"))
    assert mark(folder, "a", "--resume", "runs/a")["conformant"] is True
    keep_verdict(ConformanceCheck(1, "NCHW", differs=("the loss of step 1",)))
    assert mark(folder, "a", "--resume", "runs/a") == {
        "conformant": False,
        "differs": ["1 rank, NCHW: the loss of step 1"],
        "checked": "today",
    }
    # Checked anew since, but of another text of the program: the run's own stays unknown.
    keep_verdict(ConformanceCheck(1, "NCHW"), code="of another program")
    assert mark(folder, "a", "--resume", "runs/a") is None
