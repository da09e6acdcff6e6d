"""The same suite through every launcher: each trains as this machine does with the same ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.launch.job.job import Job
from trainmark.launch.job.watch import Limits, watch
from trainmark.launch.local import LocalLauncher
from trainmark.runner.program.code import keep_code

pytest.importorskip("torch", reason="the trials train with PyTorch, which is not installed here")

STEPS = 3
SUITE = f"""
workload: resnet50
framework: pytorch
precision: fp32
batch_per_device: 2
image_size: 32
topology: [2n1g, 4n1g]
threads: 1
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


@pytest.fixture(scope="module")
def at_home(suite, tmp_path_factory) -> dict[int, list[list[float]]]:
    """Two and four ranks on this machine, which must hold them: one thread each."""
    runs = tmp_path_factory.mktemp("home")
    by_ranks = {}
    for ranks in (2, 4):
        folder = runs / str(ranks)
        code = folder / "code"
        keep_code(code)
        words = ["--device", "cpu", "--batch", "2", "--precision", "fp32", "--layout", "NCHW"]
        words += ["--data", "synthetic", "--image-size", "32", "--steps", str(STEPS)]
        job = Job(
            (sys.executable, "-u", "-m", "trainmark.workloads.resnet50.pytorch", *words),
            {"PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"},
            folder,
            folder,
            nodes=1,
            ranks_per_node=ranks,
        )
        watch(LocalLauncher().start(job), job, Limits(300, 120), lambda: False, lambda: None)
        by_ranks[ranks] = losses(folder, ranks)
    return by_ranks


def losses(trial: Path, ranks: int) -> list[list[float]]:
    return [
        [
            event["loss"]
            for line in (trial / "events" / f"rank{rank}.jsonl").read_text().splitlines()
            if "loss" in (event := json.loads(line))
        ]
        for rank in range(ranks)
    ]


def trained_alike(runs: Path, at_home: dict[int, list[list[float]]], *topologies: str) -> None:
    for topology in topologies:
        nodes, each = (int(number) for number in topology.removesuffix("g").split("n"))
        (trial,) = (runs / "it" / "trials").glob(f"*-{topology}-*/01")
        assert json.loads((trial / "figure.json").read_text())["outcome"] == "ok"
        assert losses(trial, nodes * each) == at_home[nodes * each]
        assert len(at_home[nodes * each][0]) == STEPS
        devices = {json.loads(line)["device"] for line in (trial / "samples.jsonl").read_text().splitlines()}
        assert len(devices) == nodes


def run(suite: Path, runs: Path, *words: str, **environment: str) -> None:
    done = trainmark("run", str(suite), "--runs", str(runs), "--name", "it", *words, **environment)
    assert done.returncode == 0, done.stderr


def test_ssh(hosts, suite, at_home, tmp_path):
    run(suite, tmp_path, "--hosts", ",".join(hosts.names), "--ssh-config", str(hosts.ssh_config))
    trained_alike(tmp_path, at_home, "2n1g", "4n1g")


def test_slurm_that_is_asked_for_nodes(hosts, slurm, suite, at_home, tmp_path):
    run(suite, tmp_path, "--launcher", "slurm", **slurm.environment)
    trained_alike(tmp_path, at_home, "2n1g", "4n1g")
    assert slurm.jobs() == {}


def test_a_batch_file_for_slurm_runs_inside_its_own_allocation(hosts, slurm, suite, at_home, tmp_path):
    script = tmp_path / "it.sbatch"
    words = ("--launcher", "slurm", "--runs", str(tmp_path), "--name", "it", "--topology", "2n1g")
    written = trainmark("launch-script", str(suite), *words, "--output", str(script))
    assert written.returncode == 0, written.stderr
    output = tmp_path / "it.out"
    done = slurm.run("sbatch", "--wait", "--export=ALL", f"--output={output}", script, timeout=300)
    assert done.returncode == 0, output.read_text()
    trained_alike(tmp_path, at_home, "2n1g")


def test_mpi(hosts, suite, at_home, tmp_path):
    words = ["--mca", "plm_rsh_args", f"-F {hosts.ssh_config}"]
    options = [f"--launcher-option={word}" for word in words]
    run(suite, tmp_path, "--launcher", "mpi", "--hosts", ",".join(hosts.names), *options)
    trained_alike(tmp_path, at_home, "2n1g", "4n1g")


def test_ray_with_three_nodes(hosts, ray_cluster, suite, at_home, tmp_path):
    words = ("--ray-address", ray_cluster.address, "--ray-python", str(ray_cluster.python), "--nodes", "3")
    four_ranks_on_two = ("--topology", "2n1g,2n2g")
    run(suite, tmp_path, "--launcher", "ray", *words, *four_ranks_on_two, **ray_cluster.environment)
    trained_alike(tmp_path, at_home, "2n1g", "2n2g")


def test_scripts_started_by_hand_on_each_node(hosts, suite, at_home, tmp_path):
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
    assert losses(trial, 2) == at_home[2]
