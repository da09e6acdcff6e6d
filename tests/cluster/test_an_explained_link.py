"""`trainmark explain` of two ranks on two hosts: both profiles come home, and a slow cable is named first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the trials train with PyTorch, which is not installed here")

sys.path.insert(0, str(Path(__file__).parents[1] / "explain"))

from planted_profiles import forget_unprofiled_steps

HANG_SECONDS = 300  # far above what a run takes; a test that meets it hangs
# Short sequences of a small model: 2.4 MB of gradients a step, and little to compute.
SUITE = """
workload: gpt2
framework: pytorch
size: mini
length: 64
device: cpu
threads: 1
batch_per_device: 1
topology: 2n1g
repeats: 1
warmup: {steps: 1}
measure: {steps: 3}
"""


def trainmark(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def explained(hosts, tmp_path_factory) -> Path:
    """The folder of a case that ran over a good cable, and was explained over a slow one."""
    folder = tmp_path_factory.mktemp("explained")
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
    where = ("--hosts", "node1,node2", "--ssh-config", str(hosts.ssh_config))
    trainmark(folder, "run", "suite.yaml", "--name", "it", *where)
    hosts.delay("node2", ms=40, loss=0)
    try:
        trainmark(folder, "explain", "it", "--profile-steps", "2")
    finally:
        hosts.undelay("node2")
    (case,) = (folder / "runs" / "it" / "explain").iterdir()
    return case


def test_the_profiles_of_both_hosts_come_home(explained):
    (profile,) = explained.glob("trials/*/01/profile")
    names = {path.name for path in profile.iterdir()}
    passes = {f"rank{rank}-{name}.json.gz" for rank in range(2) for name in ("timing", "detail")}
    assert passes | {"rank0.json", "rank1.json"} <= names
    assert not [name for name in names if ".part" in name]


def test_each_rank_is_shown_with_its_host(explained):
    explanation = json.loads((explained / "explanation.json").read_text(encoding="utf-8"))
    assert [(rank["rank"], rank["node"]) for rank in explanation["ranks"]] == [(0, "node1"), (1, "node2")]
    assert all(rank["exposed"] > 0.04 for rank in explanation["ranks"])  # the cable's delay, once a step


def test_the_slow_link_is_named_first_with_its_collective_and_bandwidth(explained, tmp_path):
    (profile,) = explained.glob("trials/*/01/profile")
    forget_unprofiled_steps(profile)
    explanation = json.loads(trainmark(tmp_path, "explain", str(profile), "--json"))
    first = explanation["advice"][0]
    assert first["cause"] == "link" and "GB/s" in first["sentence"], explanation["advice"]
    buckets = explanation["buckets"]
    assert buckets and all(bucket["name"].startswith("all_reduce") for bucket in buckets)
    # 2.4 MB cannot pass a cable of 40 ms faster than in these 40 ms.
    assert all(0 < bucket["bandwidth"] < 2.4e6 / 0.04 for bucket in buckets)
    assert any(note.startswith("all_reduce") and "exposed" in note for note in explanation["notes"])
