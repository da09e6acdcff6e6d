"""Families of other packages, discovered by their entry points."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COUNTER = Path(__file__).parents[1] / "cli" / "counter"


@pytest.fixture
def site(tmp_path) -> Path:
    """A folder on the path with two installed packages: one whole, one whose declaration fails."""
    for name in ("whole", "broken"):
        shutil.copytree(COUNTER, tmp_path / name / "family", ignore=shutil.ignore_patterns("__pycache__"))
        for folder in (tmp_path / name, tmp_path / name / "family"):
            (folder / "__init__.py").touch()
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entry = f"{'counter' if name == 'whole' else name} = {name}.family"
        (metadata / "entry_points.txt").write_text(f"[trainmark.workloads]\n{entry}\n")
    (tmp_path / "broken" / "family" / "workload.py").write_text("raise RuntimeError('not today')\n")
    return tmp_path


def trainmark(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmark", *words]
    environment = {"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(site)}
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True)


def test_an_installed_family_runs_by_its_name_beside_one_that_is_broken(site):
    suite = "workload: counter\nframework: plain\ndevice: cpu\nwidth: 8\nbatch_per_device: 4\nrepeats: 1\n"
    (site / "suite.yaml").write_text(f"{suite}warmup: {{steps: 2}}\nmeasure: {{steps: 8}}\n")
    done = trainmark(site, "run", "suite.yaml", "--name", "a", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["workload"], result["width"], result["throughput"]["unit"]) == ("counter", 8, "rows/s")
    assert (site / "runs" / "a" / "code" / "whole" / "family" / "plain.py").is_file()


def test_a_broken_one_says_why_where_it_is_asked_for(site):
    (site / "suite.yaml").write_text("workload: broken\nframework: plain\n")
    done = trainmark(site, "run", "suite.yaml", "--dry-run")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (
        "the workload in the package broken.family cannot be imported: RuntimeError: not today."
        in done.stderr
    )
