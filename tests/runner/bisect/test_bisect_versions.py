"""Versions from a package index, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from made_wheels import make_wheel

from trainmark.base.errors import UserError
from trainmark.runner.bisect.packages import Requirement, parse_requirement, versions_between

GOOD, BAD = Requirement("pacer", "", "1.0"), Requirement("pacer", "", "1.10")
PROGRAM = """
import time

import pacer

began = time.perf_counter()
for step in range(1, 21):
    time.sleep(max(0.0, began + step * pacer.SECONDS - time.perf_counter()))
    print("step", step, flush=True)
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """pacer 1.0 … 1.10: 1.2 wants what nobody has, 1.9 is three times slower; and a pre-release of 1.10."""
    folder = tmp_path_factory.mktemp("index")
    make_wheel(folder, "helper", "1.0", "")
    make_wheel(folder, "helper", "2.0", "")
    versions = {"1.0": 0.004, "1.2": 0.004, "1.9": 0.012, "1.10": 0.012, "1.10rc1": 0.012}
    for version, seconds in versions.items():
        helper = "2.0" if seconds > 0.01 else "1.0"
        requires = ("nobody-has-this==1",) if version == "1.2" else (f"helper=={helper}",)
        make_wheel(folder, "pacer", version, f"SECONDS = {seconds}\n", requires)
    return folder


@pytest.fixture
def offline(index, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))


def test_versions_come_in_their_order_without_pre_releases(offline):
    assert versions_between(GOOD, BAD, sys.executable) == ["1.0", "1.2", "1.9", "1.10"]


def test_pre_releases_are_taken_where_they_are_asked_for(offline):
    between = versions_between(GOOD, BAD, sys.executable, pre=True)
    assert between == ["1.0", "1.2", "1.9", "1.10rc1", "1.10"]


def test_an_improvement_is_looked_for_from_the_later_version_down(offline):
    assert versions_between(BAD, GOOD, sys.executable) == ["1.10", "1.9", "1.2", "1.0"]


def test_a_version_that_the_index_does_not_have_is_refused(offline):
    with pytest.raises(UserError, match=r"the package index has no pacer==1\.3"):
        versions_between(GOOD, Requirement("pacer", "", "1.3"), sys.executable)


def test_a_package_that_the_index_does_not_have_is_refused(offline):
    with pytest.raises(UserError, match="the versions of nobody-has-this cannot be listed"):
        versions_between(*(Requirement("nobody-has-this", "", number) for number in "12"), sys.executable)


def test_two_packages_are_no_bisection(offline):
    with pytest.raises(UserError, match="two versions of one package"):
        versions_between(GOOD, Requirement("helper", "", "2.0"), sys.executable)


@pytest.mark.parametrize(
    ("text", "version"),
    [("torch==2.9.1", "2.9.1"), ("jax[cuda12]==0.4.30", "0.4.30"), ("main", None), ("torch>=2", None)],
)
def test_a_pinned_requirement_is_told_from_a_commit(text, version):
    requirement = parse_requirement(text)
    assert (requirement and requirement.version) == version


def test_the_slower_version_is_found_beside_one_that_does_not_install(offline, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    words = ["--good", "pacer==1.0", "--bad", "pacer==1.10", "--error", "30%", "--folder", "bisection"]
    program = ["--pattern", r"step \d+", "--steps", "all", "--warmup", "2", "--", "python", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", "bisect", *words, "--json", *program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    sides = {step["name"]: step["side"] for step in report["steps"]}
    assert sides == {"1.2": "skipped", "1.9": "bad"}
    assert report["culprits"] == ["1.2", "1.9"]
    assert "has no wheel of nobody-has-this==1 for this Python" in next(
        step["reason"] for step in report["steps"] if step["name"] == "1.2"
    )
    assert any("helper 1.0 → 2.0" in note for note in report["notes"])
    assert "pacer==1.9" in (tmp_path / "bisection" / "subjects" / "1.9" / "lock.txt").read_text()
