"""The test bed itself: each part does what the tests of the launchers rely on."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from one_host import wait_until

HERE = Path(__file__).parent

SPREAD = """
import os, socket, ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as InGroup

@ray.remote(num_cpus=1)
class Somewhere:
    def host(self):
        return socket.gethostname()

ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
group = placement_group([{"CPU": 1}] * 3, strategy="STRICT_SPREAD")
ray.get(group.ready(), timeout=30)
actors = [Somewhere.options(scheduling_strategy=InGroup(group, index)).remote() for index in range(3)]
print(*sorted(ray.get([actor.host.remote() for actor in actors], timeout=30)))
"""

UP_AND_DOWN = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from hosts import Hosts
with Hosts() as hosts:
    print(hosts.folder, hosts.network.bridge, hosts.hosts["node1"].pid, flush=True)
    if "--wait" in sys.argv:
        sys.stdin.read()
"""


def left_of(folder, bridge, pid):
    mounts = Path("/proc/mounts").read_text()
    links = [link.name for link in Path("/sys/class/net").iterdir() if link.name.startswith(bridge)]
    return (
        [part for part in (folder, f"/proc/{pid}") if Path(part).exists()]
        + links
        + [line for line in mounts.splitlines() if folder in line or "/run/trainmark-host" in line]
    )


def test_ssh_reaches_a_host_under_its_name_with_its_key_checked(hosts):
    done = hosts.ssh("node3", "hostname; echo $TRAINMARK_SCRATCH; ls /sys/class/net")
    assert done.stdout.split() == ["node3", str(hosts.scratch), "eth0", "lo"], done.stderr


def test_a_host_whose_key_is_another_is_refused(hosts, tmp_path):
    swapped = tmp_path / "known_hosts"
    swapped.write_text(hosts.known_hosts.read_text().replace("node3,", "elsewhere,"))
    argv = ["ssh", "-F", str(hosts.ssh_config), "-o", f"UserKnownHostsFile={swapped}", "node3", "true"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 255 and "Host key verification failed" in done.stderr


def test_a_link_that_is_down_times_out_and_comes_back(hosts):
    hosts.link_down("node2")
    assert hosts.ssh("node2", "true").returncode == 255
    assert hosts.ssh("node1", "true").returncode == 0
    hosts.link_up("node2")
    assert hosts.ssh("node2", "true").returncode == 0


def test_a_slow_link_still_carries_what_is_sent(hosts):
    hosts.delay("node2", ms=200, loss=1)
    began = time.monotonic()
    done = hosts.ssh("node2", "wc -c", input="x" * 100_000)
    assert done.stdout.strip() == "100000" and time.monotonic() - began > 0.4
    hosts.undelay("node2")
    assert hosts.ssh("node2", "hostname").stdout == "node2\n"


def test_a_full_scratch_is_full_on_that_host_alone(hosts):
    write = f"echo x > {hosts.scratch}/file && cat {hosts.scratch}/file"
    hosts.fill_disk("node4")
    assert "No space left" in hosts.ssh("node4", f"bash -c '{write}'").stderr
    assert hosts.ssh("node1", write).stdout == "x\n"
    hosts.free_disk("node4")
    assert hosts.ssh("node4", write).stdout == "x\n"


def test_a_killed_sshd_takes_its_connections_with_it_and_can_be_started_again(hosts):
    argv = ["ssh", "-F", str(hosts.ssh_config), "node1", "echo up; exec sleep 300"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as connection:
        assert connection.stdout.readline() == b"up\n"
        # The shell prints before it becomes `sleep`.
        assert wait_until(lambda: [run.command for run in hosts.processes("node1")] == ["sleep 300"], 10)
        (left,) = hosts.processes("node1")
        assert hosts.connections("node1")
        hosts.kill_sshd("node1")
        assert connection.wait(10) == 255
    hosts.kill("node1", left.pid)
    assert wait_until(lambda: not hosts.processes("node1"), 5)
    assert hosts.ssh("node1", "true").returncode == 255
    hosts.start_sshd("node1")
    assert hosts.ssh("node1", "true").returncode == 0


def test_a_host_without_power_is_gone_and_comes_back_empty(hosts):
    assert hosts.ssh("node4", f"touch {hosts.scratch}/file").returncode == 0
    hosts.power_off("node4")
    assert hosts.ssh("node4", "true").returncode == 255
    hosts.power_on("node4")
    assert hosts.ssh("node4", f"hostname; ls -A {hosts.scratch}").stdout == "node4\n"


def test_mpirun_starts_a_process_on_each_host(hosts):
    if not shutil.which("mpirun"):
        pytest.skip("there is no mpirun here (Debian's openmpi-bin)")
    only = [
        "--mca",
        "oob_tcp_if_include",
        hosts.network_cidr,
        "--mca",
        "btl_tcp_if_include",
        hosts.network_cidr,
    ]
    argv = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_args", f"-F {hosts.ssh_config}", *only]
    argv += ["-np", "4", "--host", ",".join(f"{name}:1" for name in hosts.names)]
    done = subprocess.run([*argv, "hostname"], capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split()) == hosts.names, done.stderr


def test_srun_starts_a_task_on_each_node_and_brings_its_output(slurm, hosts):
    done = slurm.srun("-N4", "sh", "-c", "echo $(hostname) $TRAINMARK_SCRATCH")
    assert sorted(done.stdout.splitlines()) == [f"{name} {hosts.scratch}" for name in hosts.names], (
        done.stderr
    )


def test_a_step_runs_beside_another_in_an_allocation(slurm):
    job = slurm.salloc("-N2")
    argv = ["srun", f"--jobid={job}", "--overlap", "-N2", "sh", "-c", "echo up; exec sleep 300"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=slurm.variables()) as first:
        assert first.stdout.readline() == b"up\n"
        second = slurm.srun(f"--jobid={job}", "--overlap", "-N2", "hostname", timeout=30)
        slurm.scancel(job)
    assert len(second.stdout.split()) == 2, second.stderr


def test_scancel_ends_a_job_on_every_node(slurm, hosts):
    job = slurm.sbatch("-N4", "--output=/dev/null", "--wrap", "srun sleep 300")
    assert wait_until(lambda: all("sleep 300" in str(hosts.processes(name)) for name in hosts.names), 20)
    slurm.scancel(job)
    assert wait_until(lambda: not any(hosts.processes(name) for name in hosts.names), 20)


def test_a_node_without_its_slurmd_is_seen_as_down(slurm):
    slurm.stop_slurmd("node3")
    assert wait_until(lambda: slurm.states()["node3"].startswith("down"), 30)
    slurm.start_slurmd("node3")
    assert slurm.states()["node3"] == "idle"


def test_a_placement_group_spreads_over_the_ray_nodes(ray_cluster):
    done = ray_cluster.run(SPREAD)
    assert done.stdout.split() == ray_cluster.names, done.stderr


def test_a_killed_ray_node_can_be_started_again(ray_cluster):
    ray_cluster.kill_node("node2")
    ray_cluster.start_node("node2")
    done = ray_cluster.run(SPREAD)
    # Ray may print a word about the node that died, at any moment.
    assert " ".join(ray_cluster.names) in done.stdout.splitlines(), done.stderr


def test_nothing_is_left_of_a_bed_that_was_taken_down(hosts):
    done = subprocess.run([sys.executable, "-c", UP_AND_DOWN], capture_output=True, text=True, check=True)
    assert left_of(*done.stdout.split()) == []


def test_no_process_is_left_of_a_bed_that_was_killed(hosts):
    argv = [sys.executable, "-c", UP_AND_DOWN, "--wait"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bed:
        *_, pid = bed.stdout.readline().split()
        bed.kill()
    assert wait_until(lambda: not Path(f"/proc/{pid}").exists(), 10)
    # The next bed takes over the number of the killed one, and clears away the rest.
    again = subprocess.run([sys.executable, "-c", UP_AND_DOWN], capture_output=True, text=True, check=True)
    assert left_of(*again.stdout.split()) == []
