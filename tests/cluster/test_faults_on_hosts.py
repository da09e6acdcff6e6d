"""What can go wrong with a node, on real parts: the trial ends, says where, and leaves nothing behind.

One round for each fault; TRAINMARK_FAULT_ROUNDS=10 makes it ten.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hosts import Hosts
from light_trials import DATA_PARALLEL, RING, carriers, carry_out, job, rank_pid
from ray_cluster import RayCluster
from slurm_cluster import SlurmCluster

from trainmark.launch.carrier import Carrier
from trainmark.launch.carriers.mpi import Mpi
from trainmark.launch.carriers.ray import Ray
from trainmark.launch.carriers.slurm import Slurm
from trainmark.launch.carriers.ssh import Ssh
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import Node
from trainmark.launch.outcome import Outcome

ROUNDS = int(os.environ.get("TRAINMARK_FAULT_ROUNDS", "1"))
# What the documents promise, from the fault to the end of the trial.
PROMISED_SECONDS = 15.0
ENDLESS, SHORT, SLOW = 600.0, 0.3, 6.0
NODES = 3


class Bed:
    """The hosts and what runs on them; one launcher at a time, for a run of several trials."""

    def __init__(self, kind: str, hosts: Hosts, scheduler: SlurmCluster | RayCluster | None) -> None:
        self.kind = kind
        self.hosts = hosts
        self.scheduler = scheduler

    @contextmanager
    def launcher(self) -> Iterator[ClusterLauncher]:
        before = carriers()
        launcher = ClusterLauncher(self._carrier())
        try:
            yield launcher
        finally:
            launcher.close()
        assert carriers().keys() <= before.keys()

    def heal(self) -> None:
        for bed in filter(None, (self.hosts, self.scheduler)):
            bed.heal()

    def _carrier(self) -> Carrier:
        nodes = [Node(name) for name in self.hosts.names[:NODES]]
        if self.kind == "ssh":
            return Ssh(nodes, self.hosts.ssh_config)
        if self.kind == "mpi":
            return Mpi(
                nodes, ("--mca", "plm_rsh_args", f"-F {self.hosts.ssh_config}"), self.hosts.network_cidr
            )
        if self.kind == "slurm":
            return Slurm((), NODES)
        return Ray((), NODES, self.scheduler.address, str(self.scheduler.python))


@dataclass(frozen=True)
class Fault:
    """What is done to node2, whose rank is 1; `node` is who must be named for it."""

    name: str
    launchers: tuple[str, ...]
    harm: Callable[[Bed], None]
    outcome: Outcome = Outcome.LOST
    node: str | None = "node2"
    phrase: str = ""
    program: str = RING
    nodes: int = NODES
    lasts: float = ENDLESS


def kill_rank(bed: Bed) -> None:
    bed.hosts.kill("node2", rank_pid(bed.hosts, "node2"), signal.SIGKILL)


def kill_agent(bed: Bed) -> None:
    (agent,) = [each for each in bed.hosts.processes("node2") if "b64decode" in each.command]
    bed.hosts.kill("node2", agent.pid, signal.SIGKILL)


def cancel(bed: Bed) -> None:
    (number,) = bed.scheduler.jobs()
    bed.scheduler.scancel(number)


def cut(bed: Bed) -> None:
    bed.hosts.link_down("node2")


FAULTS = (
    Fault("a killed rank", ("ssh", "mpi", "slurm", "ray"), kill_rank, Outcome.CRASHED),
    Fault("a killed rank of PyTorch", ("ssh",), kill_rank, Outcome.CRASHED, program=DATA_PARALLEL, nodes=2),
    Fault("a killed agent", ("ssh",), kill_agent),
    Fault("a link that is down", ("ssh", "mpi", "slurm", "ray"), cut),
    Fault("a link that is down under PyTorch", ("ssh",), cut, program=DATA_PARALLEL, nodes=2),
    Fault("a killed sshd", ("ssh",), lambda bed: bed.hosts.kill_sshd("node2")),
    Fault("a node without power", ("ssh", "mpi"), lambda bed: bed.hosts.power_off("node2")),
    Fault("a full disk", ("ssh",), lambda bed: bed.hosts.fill_disk("node2")),
    Fault("a stopped slurmd", ("slurm",), lambda bed: bed.scheduler.stop_slurmd("node2")),
    Fault("a killed slurmd", ("slurm",), lambda bed: bed.scheduler.kill_slurmd("node2")),
    Fault("scancel", ("slurm",), cancel, node=None, phrase="Slurm's job"),
    Fault("a killed node of Ray", ("ray",), lambda bed: bed.scheduler.kill_node("node2")),
    Fault(
        "200 ms and 1 % loss",
        ("ssh", "mpi"),
        lambda bed: bed.hosts.delay("node2", ms=200, loss=1),
        Outcome.OK,
        node=None,
        lasts=SLOW,
    ),
)
CASES = [
    pytest.param(launcher, fault, round_, id=f"{fault.name}, {launcher}, {round_}".replace(" ", "-"))
    for launcher in ("ssh", "mpi", "slurm", "ray")
    for fault in FAULTS
    if launcher in fault.launchers
    for round_ in range(1, ROUNDS + 1)
]


@pytest.fixture
def bed(kind, request, monkeypatch):
    part = {"slurm": "slurm", "ray": "ray_cluster"}.get(kind)
    more = request.getfixturevalue(part) if part else None
    for name, value in more.environment.items() if more else ():
        monkeypatch.setenv(name, value)
    made = Bed(kind, request.getfixturevalue("hosts"), more)
    made.heal()  # A test of another launcher may have harmed what that one does not know of.
    yield made
    made.heal()


@pytest.mark.parametrize(("kind", "fault", "round_"), CASES)
def test_a_fault_ends_the_trial_where_it_happened_and_nothing_is_left(kind, fault, round_, bed, tmp_path):
    with bed.launcher() as launcher:
        harmed = job(tmp_path / "harmed", fault.program, fault.lasts, fault.nodes)
        ended = carry_out(bed.hosts, launcher, harmed, lambda: fault.harm(bed))
    judgement = ended.judgement
    # Seen with `pytest -s`.
    print(
        f"\n{fault.name} | {kind} | {ended.seconds:.1f} s | {judgement.outcome.value} | {judgement.detail}",
        end="",
    )
    assert ended.leaks == {}
    assert judgement.outcome is fault.outcome, judgement
    assert fault.node in (None, judgement.node) and fault.phrase in judgement.detail, judgement
    assert fault.outcome is Outcome.OK or ended.seconds < PROMISED_SECONDS, judgement
    bed.heal()
    with bed.launcher() as launcher:
        again = carry_out(bed.hosts, launcher, job(tmp_path / "healed", RING, SHORT, NODES))
    assert (again.judgement.outcome, again.leaks) == (Outcome.OK, {}), again
