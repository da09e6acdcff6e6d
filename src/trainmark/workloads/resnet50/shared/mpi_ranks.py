"""Ranks that were started one by one, joined into one MPI communicator; for a framework that has no ranks.

MPICH lets processes meet that no mpirun has started: rank 0 opens a port and tells the others its name over a
plain connection, and they come in one after the other. Under mpirun or srun the world is taken as it is.

Runs inside the framework's interpreter: the standard library and mpi4py only, Python 3.7+.
"""

import os
import socket
import time

from trainmark.workloads.resnet50.shared import options

JOIN_SECONDS = 300  # within which every rank must have come
STARTED_BY_MPI = {"PMI_RANK", "PMIX_RANK"}  # what mpirun and srun leave in the environment
RANKS_NEED = "several ranks need mpi4py and MPICH 4, and {}; install mpi4py and mpich==4.3.2 with pip."


def check():
    """Refuses where processes that were started one by one could not join."""
    try:
        name, version = mpi().get_vendor()
    except (ImportError, RuntimeError):  # no mpi4py, or no MPI library for it
        raise options.Refusal(RANKS_NEED.format("there is none")) from None
    # MPICH 5.0 takes processes that were started apart for one and the same (pmodels/mpich#7805).
    joins = name == "MPICH" and version < (5,)
    if not joins and not STARTED_BY_MPI.intersection(os.environ):
        raise options.Refusal(RANKS_NEED.format("this is {} {}".format(name, ".".join(map(str, version)))))


def mpi():
    """mpi4py without its own begin and end: a rank that fails must not wait for the others on its way out."""
    import mpi4py

    mpi4py.rc(initialize=False, finalize=False)
    from mpi4py import MPI

    return MPI


def join(opt):
    """A communicator of all ranks in their order."""
    _keep_to_own_interface()
    MPI = mpi()  # noqa: N806 - so it is called everywhere
    MPI.Init_thread(MPI.THREAD_FUNNELED)
    comm = MPI.COMM_WORLD
    if comm.size != opt.world_size:
        comm, port = MPI.COMM_SELF, _port_of_rank_0(opt, MPI)
        if opt.rank > 0:
            comm = comm.Connect(port).Merge(high=True)
        while comm.size < opt.world_size:  # those who are in let the next one in
            comm = comm.Accept(port).Merge(high=False)
    return comm.Split(key=opt.rank)


def leave(comm):
    """Together, so that none finds the others gone."""
    comm.Barrier()
    mpi().Finalize()


def _keep_to_own_interface():
    """UCX, by which MPICH's ranks talk, would listen on every interface that it finds."""
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        os.environ.setdefault("UCX_NET_DEVICES", os.environ["GLOO_SOCKET_IFNAME"])
    if os.environ.get("LOCAL_WORLD_SIZE") == "1":
        # Nobody to share memory with, though UCX takes containers of one machine for one node.
        os.environ.setdefault("UCX_TLS", "^shm")


def _port_of_rank_0(opt, MPI):  # noqa: N803
    """The name of the MPI port that rank 0 opens and tells the others over a plain connection."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if opt.rank > 0:
        with _connected(address) as rank_0, rank_0.makefile() as told:
            return told.read()
    port = MPI.Open_port()
    with socket.create_server(address) as server:
        server.settimeout(JOIN_SECONDS)
        for _ in range(opt.world_size - 1):
            with server.accept()[0] as peer:
                peer.sendall(port.encode())
    return port


def _connected(address):
    """A connection to an address at which someone will listen before long."""
    give_up = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            return socket.create_connection(address, timeout=JOIN_SECONDS)
        except ConnectionError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)
