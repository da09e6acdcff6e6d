"""A Ray cluster on the hosts of the bed: the head on node1, two more nodes, and this machine as a guest."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psutil
from host_network import UnavailableError
from hosts import Hosts
from one_host import SCRATCH, wait_until

ROOT = Path(__file__).parents[2]
PORT = 6379
OBJECT_STORE = 80 * 1024 * 1024
# Each host's own: a raylet that this machine could reach through a shared folder would serve its drivers too.
ON_A_HOST = "/run/ray"

# A dead node is to be noticed while a test waits: asked every second, given up after three.
QUICK = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
DRIVER = """\
#!/bin/sh
exec nsenter -t {pid} -p -m -- setpriv --pdeathsig KILL -- sh -c 'cd "$0" && exec "$@"' "$PWD" {python} "$@"
"""
ALIVE = """
import sys
from ray._raylet import GcsClient
for node in GcsClient(address=sys.argv[1]).get_all_node_info().values():
    if node.state == node.ALIVE:
        print(node.node_manager_address)
"""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    # The hosts share one machine, whose memory says nothing about theirs.
    "RAY_memory_monitor_refresh_ms": "0",
}


def interpreter() -> Path:
    """One that has Ray: named by TRAINMARK_TEST_RAY, or the one that `make test-all` makes."""
    named = os.environ.get("TRAINMARK_TEST_RAY")
    python = Path(named) if named else ROOT / ".venv-ray" / "bin" / "python"
    if not python.exists():
        raise UnavailableError(f"there is no Ray here: {python} does not exist (`make ray` makes it)")
    return python


class RayCluster:
    """Nodes of two CPUs each, and this machine, where drivers run, as one of none."""

    def __init__(self, hosts: Hosts, count: int = 3) -> None:
        self.interpreter = interpreter()
        self.hosts = hosts
        self.python = hosts.folder / "python-with-ray"
        self.names = hosts.names[:count]
        self.head = self.names[0]
        self.address = f"{hosts.addresses[self.head]}:{PORT}"
        self.environment = {**QUICK, **QUIET, "RAY_ADDRESS": self.address}
        self.guest: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RayCluster:
        self.hosts.belongs_to_the_bed(_is_ray)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.guest:
            self.guest.kill()
            self.guest.wait()
            self.guest = None
        for name in self.names:
            self.kill_node(name)

    def run(self, program: str, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A program in Ray's Python on this machine."""
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        options["env"] = {**os.environ, **self.environment, **options.get("env", {})}
        return subprocess.run([str(self.python), "-c", program, *argv], **options)

    def start_node(self, name: str) -> None:
        self._start(name)

    def kill_node(self, name: str) -> None:
        """The raylet and its workers, at once and without goodbye; not what a worker has started."""
        self.hosts.hosts[name].kill_all(_is_ray_or_its_work)

    def heal(self) -> None:
        """Every node is there again, also by Ray's own account."""
        alive = self.alive()
        if not {self.hosts.addresses[self.head], self.hosts.harness_address} <= alive:
            self.close()
            self._start_all()
            return
        gone = [
            name
            for name in self.names
            if self.hosts.addresses[name] not in alive or not self.hosts.hosts[name].pids(_is_raylet)
        ]
        for name in gone:
            self.kill_node(name)
        self._start(*gone)

    def alive(self) -> set[str]:
        """The addresses of the nodes that the head thinks well of."""
        if not self.hosts.hosts[self.head].pids(_is_gcs):
            return set()
        argv = [str(self.interpreter), "-c", ALIVE, self.address]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        return set(done.stdout.split())

    def _start_all(self) -> None:
        self._start(self.head)
        self._start(*self.names[1:])
        self._join_as_guest()

    def _start(self, *names: str) -> None:
        environment = {**self.environment, "TRAINMARK_SCRATCH": SCRATCH, "TRAINMARK_HOME": f"{SCRATCH}/home"}
        variables = [f"{name}={value}" for name, value in environment.items()]
        starting = {}
        for name in names:
            place = [f"--address={self.address}"]
            if name == self.head:
                place = ["--head", f"--port={PORT}", "--include-dashboard=false"]
            argv = [*self._ray_start(self.hosts.addresses[name], ON_A_HOST), *place, "--num-cpus=2"]
            starting[name] = subprocess.Popen(
                self.hosts.command(name, ["env", *variables, *argv]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        output = {name: process.communicate(timeout=120)[0] for name, process in starting.items()}
        for name, process in starting.items():
            if process.returncode:
                raise UnavailableError(f"Ray does not start on {name}: {output[name].strip()}")

    def _join_as_guest(self) -> None:
        """A driver finds the cluster through a raylet among the processes of its machine.

        From here it would see those of all hosts, so this raylet and `python` have a view of their own.
        """
        folder = self.hosts.folder / "ray"
        folder.mkdir(exist_ok=True)
        log = folder / "guest.log"
        argv = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount", "--fork", "--kill-child"]
        argv += ["--mount-proc", *self._ray_start(self.hosts.harness_address, str(folder))]
        argv += [f"--address={self.address}", "--num-cpus=0", "--block"]
        with log.open("wb") as output:
            self.guest = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self.environment},
            )
        if not wait_until(lambda: "Ray runtime started" in log.read_text(), 60):
            raise UnavailableError(f"Ray does not start here: {log.read_text()}")
        first = psutil.Process(self.guest.pid).children()[0].pid
        self.python.write_text(DRIVER.format(pid=first, python=self.interpreter))
        self.python.chmod(0o755)

    def _ray_start(self, address: str, folder: str) -> list[str]:
        argv = [str(self.interpreter), "-m", "ray.scripts.scripts", "start", f"--node-ip-address={address}"]
        argv += [f"--temp-dir={folder}", f"--object-store-memory={OBJECT_STORE}", "--num-gpus=0"]
        return [*argv, "--disable-usage-stats"]


# Ray's own programs, and workers that wait for work.
OWN = re.compile(r"ray::(IDLE|DashboardAgent|RuntimeEnvAgent)|.*/site-packages/ray/")


def _is_ray(_: str, command: str) -> bool:
    return OWN.match(command) is not None


def _is_raylet(executable: str, _: str) -> bool:
    return Path(executable).name == "raylet"


def _is_gcs(executable: str, _: str) -> bool:
    return Path(executable).name == "gcs_server"


def _is_ray_or_its_work(_: str, command: str) -> bool:
    return _is_ray("", command) or command.startswith("ray::")
