"""Runs to export, and the command as people call it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainmark.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[2] / "store"))
sys.path.insert(0, str(Path(__file__).parents[2] / "measure"))

from exported_runs import run_with_events


@pytest.fixture
def run(tmp_path):
    """Three trials on one device, two on eight, of which the last crashed."""
    return run_with_events(tmp_path / "runs", "mine", {"1n1g": [100.0, 102.0, 101.0], "1n8g": [780.0, None]})


@pytest.fixture
def trainmark(monkeypatch, capsys, tmp_path):
    """Calls the command in the folder that holds `runs`; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAINMARK_RUNS", raising=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["trainmark", *words])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call
