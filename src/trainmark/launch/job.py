"""A job: the same command on every rank, what every launcher must be able to do, and where each rank sits.

A placement gives the variables by which every framework's ranks find each other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from trainmark.base.secrets import without_secrets


@dataclass(frozen=True)
class Job:
    """One trial to start: the same command on every rank, each with its own place in the world.

    `folder` is the trial's: `logs/` and `events/` are made below it. `environment` is added to the
    launcher's own; the launcher adds what tells the ranks apart. `gpus`: whether each rank trains on one.
    `starts_own_ranks`: a program that is left alone, with all the GPUs and none of the ranks' variables.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_folder: Path
    folder: Path
    nodes: int
    ranks_per_node: int
    gpus: bool = False
    starts_own_ranks: bool = False
    programs: Path | None = None
    """A folder of programs to be found before others of their names, where the ranks run on this machine."""

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    def log(self, rank: int) -> Path:
        return self.folder / "logs" / f"rank{rank}.log"

    def events(self, rank: int) -> Path:
        return self.folder / "events" / f"rank{rank}.jsonl"

    def profile_progress(self, rank: int) -> Path:
        """A file that grows while a rank takes the steps of its profile; see `inside.profiler.capture`."""
        return self.folder / "profile" / f"rank{rank}.alive"

    def placed(self, variables: Mapping[str, str]) -> Job:
        """The same with the variables of one rank."""
        return replace(self, environment={**self.environment, **variables})

    def shell(self) -> str:
        """The command of rank 0 as a person would paste it; secrets stay out."""
        import shlex

        shown = without_secrets(self.environment)
        assignments = [f"{name}={shlex.quote(value)}" for name, value in shown.items()]
        return " ".join([*assignments, shlex.join(self.command)])


@dataclass(frozen=True)
class Exited:
    """`oom_kills` is how often the kernel of its node ended a process for want of memory meanwhile."""

    rank: int
    code: int | None
    oom_kills: int = 0


@dataclass(frozen=True)
class NodeLoss:
    """What took ranks away that did not leave by themselves; no node where it is this machine."""

    node: str | None
    reason: str


class JobSession(Protocol):
    """A started job."""

    root_pid: int | None
    lost_output: OSError | None
    """What kept the ranks' output from being kept whole; None where it is all there."""

    def exits(self, timeout: float) -> list[Exited]:
        """The ranks that left since the last call, in their order; waits at most `timeout`."""

    def node_of(self, rank: int) -> str | None:
        """The node's name; None where there is only this machine."""

    def lost(self) -> NodeLoss | None:
        """What took the session or a node of it away without its ranks having been seen to leave."""

    def doubtful(self) -> bool:
        """Whether a node may be about to turn out lost."""

    def show_stacks(self) -> None:
        """Asks every rank to print where it stands."""

    def stop(self) -> None:
        """Ends every process of the job, on every node; returns when they are gone. Safe to call twice."""


class Launcher(Protocol):
    def start(self, job: Job) -> JobSession:
        """NodeError where a node that the job needs cannot be used."""

    def shipped(self, folder: Path) -> AbstractContextManager[None]:
        """While it lasts, every node has a copy of the folder, which its path in a job stands for."""

    def shown(self, job: Job) -> Sequence[tuple[str, str]]:
        """Each node and the command that a person would type there."""


LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo" if sys.platform == "linux" else "lo0"
EVENTS = "TRAINMARK_EVENTS"  # where trainmark.probe writes
PEERS = "TRAINMARK_PEERS"
NODE = "TRAINMARK_NODE"
MARK = "TRAINMARK_JOB"
# Linux starts no program with a longer one (MAX_ARG_STRLEN, its name included). With some 6,500 ranks their
# peers are left out: most frameworks need only the first, and those that need all say so.
LONGEST_VARIABLE = 128 * 1024 - 64
# What a starter says of its own tasks is not true of the ranks below them.
OTHERS = (
    *("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDRA_", "HYDI_", "MPI_LOCALRANKID"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP"),
    *("SLURM_TASKS_PER_NODE", "SLURM_GTIDS", "SLURM_LAUNCH_NODE_IPADDR"),
)


@dataclass(frozen=True)
class RankSlot:
    """A node's place in one job: its address among the others and a port for each of its ranks."""

    node: str
    address: str
    interface: str
    ports: tuple[int, ...]
    devices: tuple[int, ...] | None = None


class Placement:
    """All ranks of a job; `rank_slots` are in their order, each with a port for every rank that it holds."""

    def __init__(self, job: Job, rank_slots: Sequence[RankSlot], master_port: int, mark: str) -> None:
        self._job = job
        self._rank_slots = rank_slots
        self._by_rank = [rank_slot for rank_slot in rank_slots for _ in rank_slot.ports]
        self.common = {EVENTS: str(job.folder / "events"), MARK: mark}
        if job.starts_own_ranks:
            return
        self.common |= {
            "WORLD_SIZE": str(job.world_size),
            "LOCAL_WORLD_SIZE": str(job.ranks_per_node),
            "MASTER_ADDR": rank_slots[0].address,
            "MASTER_PORT": str(master_port),
        }
        peers = ",".join(
            f"{rank_slot.address}:{port}" for rank_slot in rank_slots for port in rank_slot.ports
        )
        if len(peers) <= LONGEST_VARIABLE:
            self.common[PEERS] = peers

    def of(self, rank: int) -> dict[str, str]:
        return {**self.common, **self.own(rank)}

    def own(self, rank: int) -> dict[str, str]:
        """What is not the same for all ranks."""
        rank_slot = self._by_rank[rank]
        if self._job.starts_own_ranks:
            return {NODE: rank_slot.node}
        variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self._job.ranks_per_node),
            "NODE_RANK": str(rank // self._job.ranks_per_node),
            # gloo asks the resolver for this host's name otherwise, which many machines cannot answer.
            "GLOO_SOCKET_IFNAME": rank_slot.interface,
            NODE: rank_slot.node,
        }
        if len(self._rank_slots) > 1:
            variables["NCCL_SOCKET_IFNAME"] = f"={rank_slot.interface}"
        if rank_slot.devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, rank_slot.devices))
        return variables
