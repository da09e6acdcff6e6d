"""A suite through every launcher: all ranks meet, and each knows which it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from summing_ranks import STEPS

PROGRAM = Path(__file__).with_name("summing_ranks.py")
SUITE = f"""
workload: {{name: summing, command: "{{python}} -u {PROGRAM}"}}
device: cpu
batch_per_device: 2
topology: [2n1g, 4n1g]
repeats: 1
warmup: {{steps: 1}}
measure: {{steps: {STEPS - 1}}}
limits: {{trial: 5m, silence: 2m}}
"""


def trainmark(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainmark", *words],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "ranks.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def expected(ranks: int) -> list[list[float]]:
    """What the ranks say of each step: all of them saw all of them, and each knows which it is."""
    everyone = sum(10**rank for rank in range(ranks))
    return [[everyone * (step + 1) + rank / 10 for step in range(STEPS)] for rank in range(ranks)]


def losses(trial: Path, ranks: int) -> list[list[float]]:
    return [
        [
            event["loss"]
            for line in (trial / "events" / f"rank{rank}.jsonl").read_text().splitlines()
            if "loss" in (event := json.loads(line))
        ]
        for rank in range(ranks)
    ]


def met(runs: Path, *topologies: str) -> None:
    for topology in topologies:
        nodes, each = (int(number) for number in topology.removesuffix("g").split("n"))
        (trial,) = (runs / "it" / "trials").glob(f"*-{topology}*/01")
        assert json.loads((trial / "figure.json").read_text())["outcome"] == "ok"
        assert losses(trial, nodes * each) == expected(nodes * each)
        devices = {json.loads(line)["device"] for line in (trial / "samples.jsonl").read_text().splitlines()}
        assert len(devices) == nodes


def run(suite: Path, runs: Path, *words: str, **environment: str) -> None:
    done = trainmark("run", str(suite), "--runs", str(runs), "--name", "it", *words, **environment)
    assert done.returncode == 0, done.stderr


def test_ssh(hosts, suite, tmp_path):
    run(suite, tmp_path, "--hosts", ",".join(hosts.names), "--ssh-config", str(hosts.ssh_config))
    met(tmp_path, "2n1g", "4n1g")


def test_slurm_that_is_asked_for_nodes(hosts, slurm, suite, tmp_path):
    run(suite, tmp_path, "--launcher", "slurm", **slurm.environment)
    met(tmp_path, "2n1g", "4n1g")
    assert slurm.jobs() == {}


def test_a_batch_file_for_slurm_runs_inside_its_own_allocation(hosts, slurm, suite, tmp_path):
    script = tmp_path / "it.sbatch"
    words = ("--launcher", "slurm", "--runs", str(tmp_path), "--name", "it", "--topology", "2n1g")
    written = trainmark("launch-script", str(suite), *words, "--output", str(script))
    assert written.returncode == 0, written.stderr
    output = tmp_path / "it.out"
    done = slurm.run("sbatch", "--wait", "--export=ALL", f"--output={output}", script, timeout=300)
    assert done.returncode == 0, output.read_text()
    met(tmp_path, "2n1g")


def test_mpi(hosts, suite, tmp_path):
    words = ["--mca", "plm_rsh_args", f"-F {hosts.ssh_config}"]
    options = [f"--launcher-option={word}" for word in words]
    run(suite, tmp_path, "--launcher", "mpi", "--hosts", ",".join(hosts.names), *options)
    met(tmp_path, "2n1g", "4n1g")


def test_ray_with_three_nodes(hosts, ray_cluster, suite, tmp_path):
    words = ("--ray-address", ray_cluster.address, "--ray-python", str(ray_cluster.python), "--nodes", "3")
    four_ranks_on_two = ("--topology", "2n1g,2n2g")
    run(suite, tmp_path, "--launcher", "ray", *words, *four_ranks_on_two, **ray_cluster.environment)
    met(tmp_path, "2n1g", "2n2g")


def test_scripts_started_by_hand_on_each_node(hosts, suite, tmp_path):
    words = ("--runs", str(tmp_path), "--name", "it", "--topology", "2n1g", "--hosts", "node1:1,node2:1")
    written = trainmark("launch-script", str(suite), *words)
    assert written.returncode == 0, written.stderr
    started = [
        subprocess.Popen(hosts.command(name, ["sh", str(tmp_path / "it" / "scripts" / f"{name}.sh")]))
        for name in ("node1", "node2")
    ]
    assert [each.wait(200) for each in started] == [0, 0]
    collected = trainmark("launch-script", "--collect", "it", "--runs", str(tmp_path))
    assert collected.returncode == 0, collected.stderr
    (trial,) = (tmp_path / "it" / "trials").glob("*/01")
    assert losses(trial, 2) == expected(2)
