"""Every framework that is installed here, on two hosts: it trains as on this machine, and keeps to itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from framework_trials import EVERYWHERE, Trained, carry_out, here, job_of, over_two_nodes

import small_resnet
from trainmark.launch.job import Job
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions, launcher_of
from trainmark.launch.outcome import EndCause
from trainmark.machine.frameworks.installed import standing
from trainmark.runner import inventory

pytestmark = pytest.mark.usefixtures("installed_environments")

STEPS = 3
SMALL_STEPS = 40  # of a small network: it trains for as long as it takes to look where it listens
QUICKEST = "mxnet"  # and the one whose ranks an mpirun or srun around them could lead astray
SUITE = f"""
framework: {QUICKEST}
device: cpu
topology: 2n1g
batch_per_device: 2
image_size: 32
threads: 1
warmup: {{steps: 1}}
measure: {{steps: {STEPS - 1}}}
repeats: 1
limits: {{trial: 4m, silence: 2m}}
"""


def interpreter(name: str) -> str:
    python = inventory.interpreter_of(name)
    if python is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")
    return python


@pytest.fixture(scope="module")
def code(tmp_path_factory) -> Path:
    return small_resnet.copy_code(small_resnet.THREE_BLOCKS, tmp_path_factory.mktemp("small") / "code")


@pytest.fixture(scope="module", params=inventory.framework_names())
def job(request, tmp_path_factory, installed_environments, code) -> Job:
    folder = tmp_path_factory.mktemp(request.param)
    return job_of(request.param, interpreter(request.param), folder / "here", SMALL_STEPS, code)


@pytest.fixture(scope="module")
def at_home(job) -> Trained:
    return carry_out(LocalLauncher(), made(job), "127.0.0.2", here)


@pytest.fixture(scope="module")
def on_hosts(job, hosts) -> Trained:
    nodes = tuple(Node(name) for name in hosts.names[:2])
    launcher = launcher_of(LaunchOptions("ssh", nodes, own=(("ssh_config", str(hosts.ssh_config)),)))
    there = job.folder.with_name("there")
    spread = over_two_nodes(Job(**{**vars(job), "folder": there, "working_folder": there}))
    return carry_out(launcher, made(spread), "127.0.0.1", hosts.command)


def made(job: Job) -> Job:
    job.folder.mkdir()
    return job


def test_it_trains_on_two_hosts_as_on_this_machine(at_home, on_hosts):
    assert at_home.ended is EndCause.FINISHED, at_home.detail
    assert on_hosts.ended is EndCause.FINISHED, on_hosts.detail
    assert on_hosts.losses == at_home.losses
    assert [len(losses) for losses in at_home.losses] == [SMALL_STEPS, SMALL_STEPS]


def test_on_a_host_a_rank_is_reached_at_no_other_address_than_its_own(on_hosts):
    keeps_to_itself(on_hosts)


def test_on_this_machine_a_rank_is_reached_at_the_loopback_address_alone(at_home):
    keeps_to_itself(at_home)
    assert {door.own for door in at_home.doors} == {"127.0.0.1"}


def keeps_to_itself(trained: Trained) -> None:
    assert trained.doors, f"its ranks were not seen to listen anywhere: {trained.detail}"
    assert [door for door in trained.doors if door.address not in {door.own, *EVERYWHERE}] == []
    strays = [
        place for place, open_to_it in trained.reached.items() if open_to_it != (place[1] == place[0].own)
    ]
    assert strays == []


@pytest.fixture(scope="module")
def quickest_at_home(tmp_path_factory, installed_environments) -> Trained:
    folder = tmp_path_factory.mktemp("quickest")
    job = job_of(QUICKEST, interpreter(QUICKEST), folder / "here", STEPS)
    return carry_out(LocalLauncher(), made(job), "127.0.0.2", here)


def trains_alike(folder: Path, at_home: Trained, *words: str, **environment: str) -> None:
    (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", "run", "suite.yaml", "--name", "it", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    (trial,) = (folder / "runs" / "it" / "trials").glob("*/01")
    events = [(trial / "events" / f"rank{rank}.jsonl").read_text().splitlines() for rank in range(2)]
    losses = [[e["loss"] for e in map(json.loads, lines) if "loss" in e] for lines in events]
    assert losses == at_home.losses


def test_the_quickest_of_them_trains_through_slurm(hosts, slurm, quickest_at_home, tmp_path):
    trains_alike(tmp_path, quickest_at_home, "--launcher", "slurm", **slurm.environment)


def test_the_quickest_of_them_trains_through_mpirun(hosts, quickest_at_home, tmp_path):
    words = [f"--launcher-option={w}" for w in ("--mca", "plm_rsh_args", f"-F {hosts.ssh_config}")]
    trains_alike(tmp_path, quickest_at_home, "--launcher", "mpi", "--hosts", "node1,node2", *words)


def test_the_quickest_of_them_trains_through_ray(hosts, ray_cluster, quickest_at_home, tmp_path):
    words = ("--ray-address", ray_cluster.address, "--ray-python", str(ray_cluster.python), "--nodes", "2")
    trains_alike(tmp_path, quickest_at_home, "--launcher", "ray", *words, **ray_cluster.environment)
