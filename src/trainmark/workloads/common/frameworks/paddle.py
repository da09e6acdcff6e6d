"""Paddle's part of every training: the device and its ranks, precision, clock, peaks, copies, facts."""

import contextlib
import functools
import itertools
import os

# Read when Paddle is imported; without the two it computes in one thread.
os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
os.environ.setdefault("FLAGS_paddle_num_threads", os.environ["OMP_NUM_THREADS"])
os.environ.setdefault("GLOG_minloglevel", "2")  # else every executor says that it runs

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.base import core

from trainmark import probe
from trainmark.workloads.common import optimizer, peaks
from trainmark.workloads.common.training import Training as CommonTraining

HALF = {"amp": "float16", "bf16": "bfloat16"}
CUDNN = {
    "FLAGS_cudnn_exhaustive_search": True,
    "FLAGS_conv_workspace_size_limit": 4096,  # MiB instead of 512: more algorithms to choose from
    "FLAGS_cudnn_batchnorm_spatial_persistent": True,  # else NHWC in float16 is turned for every batch norm
}


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        set_up(opt)

    def arranged(self, *arrays):
        """Return host arrays in the layout that was asked for."""
        return arrays

    def place(self, *arrays):
        return placed(self.arranged(*arrays))

    def cycled(self, batches):
        pool = [self.arranged(*batch) for batch in batches]
        if self.opt.device == "cpu":
            return itertools.cycle([placed(batch) for batch in pool])
        pinned = paddle.CUDAPinnedPlace()
        return iter(prefetch(itertools.cycle([placed(batch, pinned) for batch in pool])))

    def total(self, numbers):
        added = paddle.to_tensor(numbers, dtype="float64")
        if self.opt.world_size > 1:
            dist.all_reduce(added)
        return added.tolist()

    def read(self, loss):
        if self.opt.device == "cuda":
            loss = loss.pin_memory(blocking=False)  # in stream order, so that reading it waits for nothing
        return lambda: float(loss.numpy())

    def clock(self):
        timed = functools.partial(paddle.device.Event, enable_timing=True)
        return probe.EventClock(timed) if self.opt.device == "cuda" else None

    def profiler(self):
        return self.cuda_profiler("paddle", paddle.__version__)

    def device_memory(self):
        return paddle.device.cuda.max_memory_allocated()

    def gpu_name(self):
        return paddle.device.cuda.get_device_name()

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = HALF.get(self.opt.precision, "float32")
        a, b = (paddle.randn([side, side]).astype(kind) for _ in range(2))
        return peaks.peak_flops(lambda: paddle.matmul(a, b), side, self.clock())

    def close(self):
        if self.opt.world_size > 1:
            dist.barrier()  # rank 0 keeps the store that the others still talk to
            dist.destroy_process_group()


def set_up(opt):
    """Choose the device, with its precision and its ranks."""
    paddle.set_device("gpu:{}".format(opt.local_rank) if opt.device == "cuda" else "cpu")
    if opt.device == "cuda":
        core.set_cublas_switch(opt.precision != "fp32")  # both allow TF32 by default
        core.set_cudnn_switch(opt.precision != "fp32")
        paddle.set_flags(CUDNN)
    if opt.world_size > 1:
        peers = os.environ["TRAINMARK_PEERS"]
        os.environ.update(
            PADDLE_DISTRI_BACKEND="nccl" if opt.device == "cuda" else "gloo",
            PADDLE_MASTER="{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ),
            PADDLE_TRAINER_ID=str(opt.rank),
            PADDLE_TRAINERS_NUM=str(opt.world_size),
            PADDLE_TRAINER_ENDPOINTS=peers,
            PADDLE_CURRENT_ENDPOINT=peers.split(",")[opt.rank],
            FLAGS_selected_gpus=str(opt.local_rank),
        )
        dist.init_parallel_env()


def make_autocast(opt):
    """Return the context in which products take halves, where the precision says so."""
    half = HALF.get(opt.precision)
    if half is None:
        return contextlib.nullcontext
    return lambda: paddle.amp.auto_cast(dtype=half, level="O1")


def loaded(batches, opt):
    """Copy a loader's batches to the device."""
    on_host = paddle.CUDAPinnedPlace() if opt.device == "cuda" else None
    batches = (placed(batch, on_host) for batch in batches)
    return prefetch(batches) if opt.device == "cuda" else batches


def placed(arrays, place=None):
    """Copy host arrays to a place, the device unless one is named."""
    return tuple(paddle.to_tensor(array, place=place) for array in arrays)


def prefetch(source):
    """Copy batches in pinned memory on a stream of its own, each while the one before is in use."""
    return paddle.io.DataLoader(Stream(source), batch_size=None, use_buffer_reader=True)


class Stream(paddle.io.IterableDataset):
    def __init__(self, source):
        super().__init__()
        self.source = source

    def __iter__(self):
        return iter(self.source)


class LossScale(paddle.amp.GradScaler):
    """Paddle's loss scale of `amp`, with a state of plain numbers.

    It looks for an overflow on the host: with it, and only with it, a step waits.
    """

    def __init__(self, opt):
        super().__init__(
            enable=opt.precision == "amp",
            init_loss_scaling=optimizer.initial_loss_scale(opt),
            use_dynamic_loss_scaling=opt.loss_scale == "dynamic",
        )

    def numbers(self):
        state, names = self.state_dict(), ("scale", "incr_count", "decr_count")
        return {name: float(np.squeeze(state[name])) for name in names if name in state}

    def load_numbers(self, numbers):
        if self.is_enable():
            counts = {name: int(numbers[name]) for name in ("incr_count", "decr_count")}
            self.load_state_dict(dict(self.state_dict(), scale=[numbers["scale"]], **counts))


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    has_gpu = opt.device == "cuda" and paddle.device.cuda.device_count()
    return {
        "capability": paddle.device.cuda.get_device_capability() if has_gpu else None,
        "cinn": has_gpu and paddle.is_compiled_with_cinn(),
    }


def facts():
    has_cuda = paddle.is_compiled_with_cuda()
    return {
        "framework_version": paddle.__version__,
        "cuda": paddle.version.cuda() if has_cuda else None,
        "cudnn": paddle.version.cudnn() if has_cuda else None,
        "nccl": paddle.version.nccl() if has_cuda else None,
        "cuda_devices": paddle.device.cuda.device_count(),
    }
