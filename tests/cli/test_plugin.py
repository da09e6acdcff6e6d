"""A command of another package: found by its entry point, listed without an import, shown as a page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
METADATA = "Metadata-Version: 2.1\nName: trainmark-slowest\nVersion: 1.0\n"


@pytest.fixture
def plugged(tmp_path, runs):
    """Run the command with the example installed, or with what `entry` names in its place."""

    def call(*words, entry="trainmark_slowest:slowest"):
        info = tmp_path / "site" / "trainmark_slowest-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(METADATA)
        (info / "entry_points.txt").write_text(f"[trainmark.commands]\nslowest = {entry}\nrun = {entry}\n")
        path = os.pathsep.join([str(info.parent), str(EXAMPLE), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "trainmark", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "LANGUAGE": "en"},
            capture_output=True,
            text=True,
        )

    return call


def test_a_command_of_another_package_shows_its_page(plugged):
    done = plugged("slowest", "before")
    assert (done.returncode, done.stderr) == (0, "")
    assert "of its case's fastest" in done.stdout and "100.0 %" in done.stdout
    assert plugged("slowest", "before", "--html").stdout.startswith("<!doctype html>")


def test_it_is_listed_without_being_imported_and_takes_no_name_of_ours(plugged):
    done = plugged("--help", entry="nothing_there:command")
    assert done.returncode == 0
    assert "Commands:\n  slowest  trainmark-slowest 1.0" in done.stdout
    assert done.stdout.count("\n  run ") == 1


def test_one_that_cannot_be_loaded_is_refused_in_one_sentence(plugged):
    done = plugged("slowest", entry="nothing_there:command")
    assert done.returncode == 2
    assert "the command 'slowest' of trainmark-slowest 1.0 cannot be loaded: No module named" in done.stderr
