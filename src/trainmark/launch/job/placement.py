"""Where each rank sits, and the variables by which every framework's ranks find each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.launch.job.job import Job

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


def placement(
    job: Job, rank: int, rank_slots: Sequence[RankSlot], master_port: int, mark: str
) -> dict[str, str]:
    """The variables of one rank; of many, make the Placement once."""
    return Placement(job, rank_slots, master_port, mark).of(rank)
