"""A GPU of another node on which somebody else is at work as well is named in the result.

No host of the bed has a GPU: a stand-in for nvidia-smi tells of one on each, and of the processes that are
listed in a file of the host's own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cluster_run import PROGRAM, ClusterRun
from one_host import wait_until

LISTED = "/run/gpu-processes"
SMI = f"""\
#!{sys.executable}
import sys, time
from pathlib import Path

GPU = {{"index": "0", "name": "Stand-in", "uuid": "GPU-5", "utilization.gpu": "97", "memory.used": "900"}}
asked = sys.argv[1].partition("=")[2].split(",")
while True:
    rows = [GPU]
    if sys.argv[1].startswith("--query-compute-apps="):
        rows = [{{"gpu_uuid": "GPU-5", "pid": pid}} for pid in Path("{LISTED}").read_text().split()]
    for row in rows:
        print(", ".join(row.get(name, "[N/A]") for name in asked), flush=True)
    if "--loop-ms=500" not in sys.argv:
        break
    time.sleep(0.1)
"""
# A rank is on the GPU of its host too, and is no stranger there.
ON_THE_GPU = f"""
import os
with open("{LISTED}", "a") as listed:
    print(os.getpid(), file=listed)
"""


@pytest.fixture
def with_gpus(hosts, tmp_path):
    """node1 and node2 with the stand-in where ssh looks for programs first."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(SMI)
    (programs / "nvidia-smi").chmod(0o755)
    first = hosts.ssh("node1", "echo $PATH").stdout.partition(":")[0]
    for name in ("node1", "node2"):
        hosts.run(name, ["mount", "--bind", str(programs), first], check=True)
        hosts.run(name, ["sh", "-c", f": > {LISTED}"], check=True)
    yield hosts
    for name in ("node1", "node2"):
        hosts.run(name, ["umount", first], check=True)


@pytest.fixture
def stranger(hosts):
    """A process on node2 that no trial has started, by its number there."""
    process = subprocess.Popen(hosts.command("node2", ["sleep", "1234"]))

    def pids() -> list[int]:
        return [each.pid for each in hosts.processes("node2") if each.command == "sleep 1234"]

    assert wait_until(lambda: bool(pids()), 10)
    yield pids()[0]
    process.kill()
    process.wait()


def samples_of(run: ClusterRun) -> list[dict]:
    files = run.runs.glob("*/trials/*/.01.part/samples.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()[:-1]]


def test_a_strangers_process_on_a_gpu_of_the_second_node_is_a_doubt_that_names_it(
    with_gpus, stranger, tmp_path
):
    run = ClusterRun(tmp_path, with_gpus, "--hosts", "node1,node2", "--ssh-config", str(with_gpus.ssh_config))
    (run.folder / "program.py").write_text(ON_THE_GPU + PROGRAM)
    run.write(topology=["2n1g"], device="cuda")
    process = run.begin(hold=1)
    try:
        run.wait_for_trial(1)
        with_gpus.run("node2", ["sh", "-c", f"echo {stranger} >> {LISTED}"], check=True)
        run.wait_for(
            lambda: sum(row["device"] == "node2/cuda:0" and row["foreign_processes"] == 1
                        for row in samples_of(run)) >= 3,
            "the stranger to be seen",
        )  # fmt: skip
        run.hold_file.unlink()
        done = run.finish(process)
    finally:
        process.kill()
        process.communicate()
    assert done.code == 0, done.errors
    (report,) = run.runs.glob("*/report.json")
    (result,) = json.loads(report.read_text())["results"]
    doubts = {doubt["code"]: doubt["message"] for doubt in result["doubts"]}
    assert "node2/cuda:0" in doubts["device-shared"] and "node1" not in doubts["device-shared"]
