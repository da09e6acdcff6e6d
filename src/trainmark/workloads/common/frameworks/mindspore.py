"""MindSpore's part of every training: the device and its ranks, precision, clock, peaks, copies, facts."""

import itertools
import os
import platform
import socket
import subprocess
import sys

os.environ.setdefault("GLOG_v", "3")  # errors only
if platform.machine() == "x86_64":
    # With AVX-512, the oneDNN in MindSpore 2.10 has nothing but its reference code for plainly laid out
    # weights beyond 1x1: a step takes ten times as long as with what it has for AVX2.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore as ms
import numpy as np
from mindspore import amp, communication, ops
from mindspore.device_context.cpu import op_tuning
from mindspore.device_context.gpu import device as gpu
from mindspore.device_context.gpu import op_precision

from trainmark import probe
from trainmark.workloads.common import optimizer, peaks
from trainmark.workloads.common.training import Training as CommonTraining

# On the CPU MindSpore adds only float32 over ranks: numbers go as digits of this base, and none is rounded.
PLACES = 4096.0 ** np.arange(-2, 4)

# Ends of itself once every rank has left. Its input ends with rank 0; the others then have half a minute.
SCHEDULER = """
"$0" -c "import mindspore; mindspore.communication.init()" &
read -r _
for _ in $(seq 30); do kill -0 $! 2>/dev/null || exit 0; sleep 1; done
kill -9 $!
"""


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        set_up(opt)
        # An attribute, for its input closes with us.
        self.scheduler = join_ranks(opt) if opt.world_size > 1 else None

    def cycled(self, batches):
        # A tensor keeps its copy on the device once it has one: only a new one is copied again.
        return (self.place(*batch) for batch in itertools.cycle(batches))

    def total(self, numbers):
        digits = np.floor(np.array(numbers)[:, None] / PLACES) % 4096
        if self.opt.world_size > 1:
            digits = ops.AllReduce()(ms.Tensor(digits, ms.float32)).asnumpy()
        return (digits * PLACES).sum(axis=1).tolist()

    def read(self, loss):
        return loss.item

    def clock(self):
        return probe.SynchronousClock()  # MindSpore waits for the device

    def profiler(self):
        return self.cuda_profiler("mindspore", ms.__version__)

    def device_memory(self):
        return ms.runtime.max_memory_allocated()

    def gpu_name(self):
        return ms.hal.get_device_name(self.opt.local_rank)

    def peak_flops(self):
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = ms.float16 if self.opt.precision == "amp" else ms.float32
        a, b = (ops.standard_normal((side, side)).astype(kind) for _ in range(2))
        return peaks.peak_flops(lambda: ops.matmul(a, b)[0, 0].item(), side)

    def close(self):
        if self.opt.world_size > 1:
            # A barrier, of which there is none on the CPU: no rank may leave long after rank 0.
            ops.AllReduce()(ms.Tensor([0.0], ms.float32)).asnumpy()
            communication.release()


def set_up(opt):
    """Choose graph mode and the device, with its precision and its threads."""
    ms.set_context(mode=ms.PYNATIVE_MODE if opt.engine == "plain" else ms.GRAPH_MODE)
    if opt.device == "cuda":
        ms.set_device("GPU", opt.local_rank)
        op_precision.conv_allow_tf32(opt.precision != "fp32")
        op_precision.matmul_allow_tf32(opt.precision != "fp32")
    else:
        ms.set_device("CPU")
        # Left to itself it takes a thread for each core, up to 25; it never takes fewer than two.
        op_tuning.threads_num(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))


def join_ranks(opt):
    """As under MindSpore's own msrun the ranks meet at a scheduler, which rank 0 starts and gets here."""
    os.environ.update(
        MS_WORKER_NUM=str(opt.world_size),
        MS_NODE_ID=str(opt.rank),
        MS_SCHED_HOST=socket.gethostbyname(os.environ["MASTER_ADDR"]),
        MS_SCHED_PORT=os.environ["MASTER_PORT"],
    )
    scheduler = None
    if opt.rank == 0:
        command, environment = ["sh", "-c", SCHEDULER, sys.executable], dict(os.environ, MS_ROLE="MS_SCHED")
        scheduler = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    os.environ["MS_ROLE"] = "MS_WORKER"
    communication.init()
    return scheduler


def loss_scaler(opt):
    if opt.precision != "amp":
        return None
    if opt.loss_scale == "dynamic":
        return amp.DynamicLossScaler(
            optimizer.FIRST_LOSS_SCALE, scale_factor=2, scale_window=optimizer.LOSS_SCALE_GROWTH_STEPS
        )
    return amp.StaticLossScaler(opt.loss_scale)


def scaler_state(scaler):
    """Return the state of a loss scaler by name; a static one has none."""
    dynamic = isinstance(scaler, amp.DynamicLossScaler)
    return [("scale", scaler.scale_value), ("counter", scaler.counter)] if dynamic else []


def on_host(named):
    # Copied: on the CPU an array would share the memory that the next step writes.
    return {name: parameter.asnumpy().copy() for name, parameter in named}


def on_host_numbers(named):
    return {name: float(state.asnumpy()) for name, state in named}


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    has_gpu = opt.device == "cuda" and gpu.is_available()
    return {"capability": ms.hal.get_device_capability(0, "GPU") if has_gpu else None}


def facts():
    return {
        "framework_version": ms.__version__,
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA"),
        "cuda_devices": gpu.device_count() if gpu.is_available() else 0,
    }
