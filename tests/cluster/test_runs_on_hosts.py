"""Whole runs on several hosts that lose a node, an allocation or the harness itself, and go on later."""

from __future__ import annotations

import os
import signal

import pytest
from cluster_run import ClusterRun
from one_host import wait_until

THREE_TRIALS = {"topology": ["2n1g"], "repeats": 3}


def finished(run):
    """What must not change once a trial is finished."""
    states = {path: path.stat() for path in run.runs.glob("*/trials/*/[0-9][0-9]/figure.json")}
    return {path: (state.st_ino, state.st_mtime_ns) for path, state in states.items()}


@pytest.fixture
def on_hosts(hosts, tmp_path):
    def made(names: str) -> ClusterRun:
        run = ClusterRun(tmp_path, hosts, "--hosts", names, "--ssh-config", str(hosts.ssh_config))
        started.append(run)
        return run

    started: list[ClusterRun] = []
    yield made
    for run in started:
        end(run)


@pytest.fixture
def on_slurm(slurm, hosts, tmp_path, monkeypatch):
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    run = ClusterRun(tmp_path, hosts, "--launcher", "slurm")
    yield run
    end(run)


@pytest.fixture
def on_ray(ray_cluster, hosts, tmp_path, monkeypatch):
    for name, value in ray_cluster.environment.items():
        monkeypatch.setenv(name, value)
    where = ("--launcher", "ray", "--ray-address", ray_cluster.address, "--ray-python")
    run = ClusterRun(tmp_path, hosts, *where, str(ray_cluster.python))
    yield run
    end(run)


def end(run):
    for process in run.started:
        process.kill()
        process.communicate()
    for pid in run.left_running():
        os.kill(pid, signal.SIGKILL)


def test_a_node_that_dies_costs_its_trials_and_a_resumed_run_makes_them_good(on_hosts, hosts):
    run = on_hosts("node1,node2")
    run.write(**THREE_TRIALS)
    process = run.begin(hold=2)
    run.wait_for_trial(2)
    before = finished(run)
    hosts.power_off("node2")
    done = run.finish(process)
    trials = run.trials()
    assert done.code == 1
    assert [(trial["outcome"], trial["node"]) for trial in trials] == [
        ("ok", None),
        ("lost", "node2"),
        ("lost", "node2"),
    ]
    assert "node2" in done.errors and run.left() == []

    refused = run.finish(run.start("run", "--resume"))
    assert refused.code == 2 and "node2" in refused.errors
    assert run.outcomes() == ["ok", "lost", "lost"]

    hosts.heal()
    run.hold_file.unlink()
    assert run.resume().code == 0
    assert run.outcomes() == ["ok", "ok", "ok"]
    assert before and before.items() <= finished(run).items()


def test_a_node_that_fails_twice_is_left_out_and_what_needs_it_is_named(on_hosts, hosts):
    run = on_hosts("node1,node2,node3")
    run.write(topology=["2n1g", "3n1g"], repeats=2)
    process = run.begin("--exclude-bad-nodes", hold=2)
    run.wait_for_trial(2)
    hosts.power_off("node2")
    done = run.finish(process)
    assert "node2 failed 2 times and is left out; 2 nodes are left" in done.errors
    assert "needs 3 nodes; 2 are left without node2" in done.errors
    assert done.code == 1
    smaller = [trial for trial in run.trials() if "2n1g" in trial["case"]]
    assert [trial["outcome"] for trial in smaller] == ["ok", "ok"]
    assert run.left() == []


def test_a_cancelled_allocation_stops_the_run_with_a_sentence_and_it_goes_on_later(on_slurm, slurm):
    run = on_slurm
    run.write(**THREE_TRIALS)
    process = run.begin("--exclude-bad-nodes", hold=2)
    run.wait_for_trial(2)
    (number,) = slurm.jobs()
    slurm.scancel(number)
    done = run.finish(process)
    assert done.code == 1 and f"Slurm's job {number}" in done.errors and "--resume" in done.errors
    assert "left out" not in done.errors
    assert run.outcomes() == ["ok", "lost"]
    assert wait_until(lambda: not slurm.jobs(), 20)

    run.hold_file.unlink()
    assert run.resume().code == 0
    assert run.outcomes() == ["ok", "ok", "ok"]
    assert run.left() == [] and wait_until(lambda: not slurm.jobs(), 20)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_that_is_stopped_leaves_nothing_on_any_host(on_hosts, number):
    run = on_hosts("node1,node2")
    run.write(**THREE_TRIALS)
    process = run.begin(hold=2)
    run.wait_for_trial(2)
    stop(process, number)
    assert run.left() == []
    run.hold_file.unlink()
    assert run.resume().code == 0
    assert run.outcomes() == ["ok", "ok", "ok"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_that_is_stopped_gives_its_allocation_back(on_slurm, slurm, number):
    run = on_slurm
    run.write(**THREE_TRIALS)
    process = run.begin(hold=1)
    run.wait_for_trial(1)
    assert slurm.jobs()
    stop(process, number)
    assert run.left() == [] and wait_until(lambda: not slurm.jobs(), 20)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_that_is_stopped_leaves_no_placement_group(on_ray, ray_cluster, number):
    run = on_ray
    run.write(**THREE_TRIALS)
    process = run.begin(hold=1)
    run.wait_for_trial(1)
    assert reserved(ray_cluster) > 0
    stop(process, number)
    assert run.left() == [] and wait_until(lambda: reserved(ray_cluster) == 0, 20)


def stop(process, number):
    """Ctrl-C twice is now; kill -9 is never expected."""
    process.send_signal(number)
    if number == signal.SIGINT:
        while "finishing this trial" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert number == signal.SIGKILL or (process.returncode == 130 and "Traceback" not in errors), errors


RESERVED = """
import os, ray
from ray.util import placement_group_table
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
print(sum(group["state"] not in ("REMOVED",) for group in placement_group_table().values()))
"""


def reserved(ray_cluster):
    return int(ray_cluster.run(RESERVED).stdout)
