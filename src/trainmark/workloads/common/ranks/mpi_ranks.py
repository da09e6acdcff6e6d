"""Ranks that were started one by one, joined into one MPI communicator; for a framework that has no ranks.

MPICH lets processes meet that no mpirun has started: rank 0 opens a port and tells the others its name over a
plain connection, and they come in one after the other. Under mpirun or srun the world is taken as it is.
"""

import os
import socket
import time

JOIN_SECONDS = 300  # within which every rank must have come
STARTED_BY_MPI = {"PMI_RANK", "PMIX_RANK"}  # what mpirun and srun leave in the environment


def fault():
    """Return why processes that were started one by one could not join; None where they can."""
    try:
        name, version = mpi().get_vendor()
    except (ImportError, RuntimeError):  # no mpi4py, or no MPI library for it
        return "there is none"
    # MPICH 5.0 takes processes that were started apart for one and the same (pmodels/mpich#7805).
    joins = name == "MPICH" and version < (5,)
    if joins or STARTED_BY_MPI.intersection(os.environ):
        return None
    return "this is {} {}".format(name, ".".join(map(str, version)))


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
        with _connected(address) as rank_0, rank_0.makefile() as stream:
            return stream.read()
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
