"""MXNet's part of every training: ranks, precision, gradients side by side in buffers, peaks, facts."""

import functools
import itertools
import pathlib

import mxnet as mx
import numpy as np
from mxnet import autograd
from mxnet.contrib import amp

from trainmark.workloads.common import peaks
from trainmark.workloads.common.ranks import mpi_ranks
from trainmark.workloads.common.training import Training as CommonTraining

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # as MXNet calls it, for numpy has none
BUCKET = 40  # tensors that are averaged and updated together; more than 60 crash the fused update


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others.

    A step waits for its end: there is no clock.
    """

    def __init__(self, opt):
        self.opt = opt
        self.ranks = set_up(opt)

    def total(self, numbers):
        added = np.array(numbers, np.float64)
        if self.ranks is not None:
            self.ranks.Allreduce(mpi_ranks.mpi().IN_PLACE, added)
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
            mpi_ranks.leave(self.ranks)


def set_up(opt):
    """Set the precision, and return the joined ranks: None where there is but one."""
    if opt.precision == "bf16":
        amp.init(target_dtype="bfloat16")  # for all graphs to come; the weights stay float32
    return mpi_ranks.join(opt) if opt.world_size > 1 else None


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
        ranks.Allreduce(mpi_ranks.mpi().IN_PLACE, self.buffer)


def buckets(named):
    """Return the parameters in groups, the last first: as the backward pass comes to them."""
    ordered = list(reversed(list(named.items())))
    return [dict(ordered[first : first + BUCKET]) for first in range(0, len(ordered), BUCKET)]


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    mpi_fault = mpi_ranks.fault() if opt.world_size > 1 else None
    return {"avx512_bf16": has_avx512_bf16(), "mpi_fault": mpi_fault}


def has_avx512_bf16():
    cpu = pathlib.Path("/proc/cpuinfo")
    return mx.runtime.Features().is_enabled("MKLDNN") and cpu.exists() and "avx512_bf16" in cpu.read_text()


def facts():
    return {"framework_version": mx.__version__, "cuda_devices": mx.context.num_gpus()}
