"""Where each rank sits, and the variables by which every framework's ranks find each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.launch.job import Job

LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo" if sys.platform == "linux" else "lo0"
EVENTS = "TRAINMARK_EVENTS"  # where trainmark.probe writes
PEERS = "TRAINMARK_PEERS"
NODE = "TRAINMARK_NODE"
MARK = "TRAINMARK_JOB"
# What a starter says of its own tasks is not true of the ranks below them.
OTHERS = (
    *("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDRA_", "HYDI_", "MPI_LOCALRANKID"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP"),
    *("SLURM_TASKS_PER_NODE", "SLURM_GTIDS", "SLURM_LAUNCH_NODE_IPADDR"),
)


@dataclass(frozen=True)
class Seat:
    """A node's place in one job: its address among the others and a port for each of its ranks."""

    node: str
    address: str
    interface: str
    ports: tuple[int, ...]
    devices: tuple[int, ...] | None = None


def placement(job: Job, rank: int, seats: Sequence[Seat], master_port: int, mark: str) -> dict[str, str]:
    """`seats` are in the order of their ranks; each has a port for every rank that it holds."""
    by_rank = [(seat, port) for seat in seats for port in seat.ports]
    seat = by_rank[rank][0]
    variables = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % job.ranks_per_node),
        "WORLD_SIZE": str(job.world_size),
        "LOCAL_WORLD_SIZE": str(job.ranks_per_node),
        "NODE_RANK": str(rank // job.ranks_per_node),
        "MASTER_ADDR": seats[0].address,
        "MASTER_PORT": str(master_port),
        PEERS: ",".join(f"{each.address}:{port}" for each, port in by_rank),
        # gloo asks the resolver for this host's name otherwise, which many machines cannot answer.
        "GLOO_SOCKET_IFNAME": seat.interface,
        EVENTS: str(job.folder / "events"),
        NODE: seat.node,
        MARK: mark,
    }
    if len(seats) > 1:
        variables["NCCL_SOCKET_IFNAME"] = f"={seat.interface}"
    if seat.devices is not None:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, seat.devices))
    return variables
