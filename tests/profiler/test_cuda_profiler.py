"""Frameworks whose kernels CUPTI records, where it cannot be used: the program goes on and says why."""

from __future__ import annotations

import json
from types import SimpleNamespace

from trainmark.inside.profiler.capture import Capture
from trainmark.workloads.common.training import Training


def manifest_of(device: str, folder, monkeypatch) -> dict:
    """What a rank leaves that was asked for a profile, on a machine without a compiler."""
    monkeypatch.setenv("TRAINMARK_PROFILE", str(folder))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.delenv("TRAINMARK_CUPTI", raising=False)
    training = Training()
    training.opt = SimpleNamespace(device=device)
    capture = Capture(lambda: training.cuda_profiler("paddle", "3.0"))
    capture.begin()
    assert not capture.running
    return json.loads((folder / "rank0.json").read_text())


def test_without_a_compiler_the_manifest_says_so(tmp_path, monkeypatch):
    assert "No C compiler is here" in manifest_of("cuda", tmp_path, monkeypatch)["error"]


def test_on_a_cpu_there_is_no_profiler(tmp_path, monkeypatch):
    error = manifest_of("cpu", tmp_path, monkeypatch)["error"]
    assert error == "no profiler of this framework is known for this device"
