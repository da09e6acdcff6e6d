"""PyTorch's ranks, joined by a store that listens at the master's address; left to itself, it does at all.

Runs inside PyTorch's interpreter: PyTorch 2.8+ takes over a socket that listens.
"""

import gc
import os
import socket

import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401 - imported later, its defaults would hold the group
from torch.distributed.constants import default_pg_timeout

from trainmark.workloads.common.own_address import own_address


def join(backend):
    """As PyTorch itself does it where no launcher has told an address."""
    dist.init_process_group(backend, **(_meeting() if own_address() else {}))


def leave():
    """End the group and its threads; whoever held the group has let go of it.

    A thread of gloo that frees a tensor while the interpreter ends aborts the process: "terminate called
    without an active exception".
    """
    gc.collect()
    dist.destroy_process_group()


def _meeting():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    listening = socket.create_server((address, port)).detach() if rank == 0 else None
    store = dist.TCPStore(
        address, port, world_size, rank == 0, default_pg_timeout, master_listen_fd=listening
    )
    return {"store": store, "rank": rank, "world_size": world_size}
