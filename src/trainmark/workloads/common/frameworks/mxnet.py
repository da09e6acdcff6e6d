"""What all families need of MXNet: device, ranks over MPI, peaks, facts.

MXNet has no ranks of its own. MPICH lets processes meet that no mpirun has started: rank 0 opens a port
and tells the others its name over a plain connection, and they come in one after the other. Under mpirun
or srun the world is taken as it is.
"""

import functools
import itertools
import os
import pathlib
import socket
import time

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.contrib import amp

from trainmark.workloads.common import peaks
from trainmark.workloads.common.training import Training as CommonTraining

JOIN_SECONDS = 300  # within which every rank must have come
STARTED_BY_MPI = {"PMI_RANK", "PMIX_RANK"}  # what mpirun and srun leave in the environment


def why_mpi_cannot_join():
    """Return why processes that were started one by one could not join; None where they can."""
    try:
        name, version = import_mpi().get_vendor()
    except (ImportError, RuntimeError):  # no mpi4py, or no MPI library for it
        return "there is none"
    # MPICH 5.0 takes processes that were started apart for one and the same (pmodels/mpich#7805).
    joins = name == "MPICH" and version < (5,)
    if joins or STARTED_BY_MPI.intersection(os.environ):
        return None
    return "this is {} {}".format(name, ".".join(map(str, version)))


def import_mpi():
    """mpi4py without its own begin and end: a rank that fails must not wait for the others on its way out."""
    import mpi4py

    mpi4py.rc(initialize=False, finalize=False)
    from mpi4py import MPI

    return MPI


def join_mpi(opt):
    """A communicator of all ranks in their order."""
    _keep_to_own_interface()
    MPI = import_mpi()  # noqa: N806 - so it is called everywhere
    MPI.Init_thread(MPI.THREAD_FUNNELED)
    comm = MPI.COMM_WORLD
    if comm.size != opt.world_size:
        comm, port = MPI.COMM_SELF, _port_of_rank_0(opt, MPI)
        if opt.rank > 0:
            comm = comm.Connect(port).Merge(high=True)
        while comm.size < opt.world_size:  # those who are in let the next one in
            comm = comm.Accept(port).Merge(high=False)
    return comm.Split(key=opt.rank)


def leave_mpi(comm):
    """Together, so that none finds the others gone."""
    comm.Barrier()
    import_mpi().Finalize()


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
        with _connect_when_up(address) as rank_0, rank_0.makefile() as stream:
            return stream.read()
    port = MPI.Open_port()
    with socket.create_server(address) as server:
        server.settimeout(JOIN_SECONDS)
        for _ in range(opt.world_size - 1):
            with server.accept()[0] as peer:
                peer.sendall(port.encode())
    return port


def _connect_when_up(address):
    """A connection to an address at which someone will listen before long."""
    give_up = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            return socket.create_connection(address, timeout=JOIN_SECONDS)
        except ConnectionError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # as MXNet calls it, for numpy has none
BUCKET = 40  # tensors that are averaged and updated together; more than 60 crash the fused update


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others.

    A step waits for its end: there is no clock.
    """

    def __init__(self, opt):
        self.opt = opt
        self.ranks = set_up(opt)

    def cycled(self, batches):
        return itertools.cycle([self.place(*batch) for batch in batches])  # nothing to copy on the CPU

    def total(self, numbers):
        added = np.array(numbers, np.float64)
        if self.ranks is not None:
            self.ranks.Allreduce(import_mpi().IN_PLACE, added)
        return added.tolist()

    def read(self, loss):
        return loss.asscalar

    def profiler(self):
        return self.cuda_profiler("mxnet", mx.__version__)

    def peak_flops(self):
        side = 1024
        kind = BFLOAT16 if self.opt.precision == "bf16" else np.float32
        a, b = (mx.nd.amp_cast(mx.nd.random.normal(shape=(side, side)), dtype=kind) for _ in range(2))
        # `dot` would go to OpenBLAS, which is several times slower than what the model runs on.
        product = functools.partial(mx.nd.FullyConnected, a, b, num_hidden=side, no_bias=True)
        return peaks.peak_flops(lambda: product().wait_to_read(), side)

    def close(self):
        if self.ranks is not None:
            leave_mpi(self.ranks)


def set_up(opt):
    """Set the precision, and return the joined ranks: None where there is but one."""
    if opt.precision == "bf16":
        amp.init(target_dtype="bfloat16")  # for all graphs to come; the weights stay float32
    return join_mpi(opt) if opt.world_size > 1 else None


class Bucket:
    """Some parameters by name, and their gradients side by side in one buffer."""

    def __init__(self, named, accumulated=False):
        self.names = list(named)
        for parameter in named.values():
            parameter.grad_req = "null"  # gives the gradient array of its own back
        self.weights = [parameter.data() for parameter in named.values()]
        memory = np.zeros(sum(weight.size for weight in self.weights), np.float32)
        self.buffer = memory[:]  # MXNet makes the array that it is given read-only, not this view of it
        self.flat = mx.nd.from_numpy(memory)
        ends = list(itertools.accumulate(weight.size for weight in self.weights))
        self.gradients = [
            self.flat[end - weight.size : end].reshape(weight.shape)
            for end, weight in zip(ends, self.weights)
        ]
        autograd.mark_variables(self.weights, self.gradients, "add" if accumulated else "write")

    def sum_over(self, ranks):
        self.flat.wait_to_read()  # the backward pass has come by here, and goes on meanwhile
        ranks.Allreduce(import_mpi().IN_PLACE, self.buffer)


def buckets(named):
    """Return the parameters in groups, the last first: as the backward pass comes to them."""
    ordered = list(reversed(list(named.items())))
    return [dict(ordered[first : first + BUCKET]) for first in range(0, len(ordered), BUCKET)]


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    mpi_fault = why_mpi_cannot_join() if opt.world_size > 1 else None
    return {"avx512_bf16": has_avx512_bf16(), "mpi_fault": mpi_fault}


def has_avx512_bf16():
    cpu = pathlib.Path("/proc/cpuinfo")
    return mx.runtime.Features().is_enabled("MKLDNN") and cpu.exists() and "avx512_bf16" in cpu.read_text()


def facts():
    return {"framework_version": mx.__version__, "cuda_devices": mx.context.num_gpus()}
