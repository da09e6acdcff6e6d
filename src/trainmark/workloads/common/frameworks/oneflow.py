"""OneFlow's part of every training: the device and its ranks, precision, clock, peaks, facts."""

import os

from trainmark.workloads.common.own_address import AddressGuard

RANK = os.environ.get("RANK", "0")

with AddressGuard():  # the import joins the ranks
    import oneflow as flow  # where nothing launched it, it sets RANK to -1
from oneflow import sysconfig  # noqa: E402
from oneflow.framework import session_context  # noqa: E402

from trainmark import probe  # noqa: E402
from trainmark.workloads.common import peaks  # noqa: E402
from trainmark.workloads.common.training import Training as CommonTraining  # noqa: E402

os.environ["RANK"] = RANK


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        set_up(opt)
        self.losses = probe.LossClock(lambda loss: loss.item())  # OneFlow runs on by itself, without events

    def place(self, *arrays):
        return self.place_on(self.opt.device, *arrays)

    def place_on(self, device, *arrays):
        return tuple(flow.tensor(array).to(device) for array in arrays)

    def total(self, numbers):
        added = flow.tensor(numbers, dtype=flow.float64).to(self.opt.device)
        return sum_over_ranks(added).tolist()

    def read(self, loss):
        return self.losses.read(loss)

    def clock(self):
        return self.losses

    def profiler(self):
        return self.cuda_profiler("oneflow", flow.__version__)

    def device_memory(self):
        return None  # OneFlow knows what the whole GPU holds, not what it took itself

    def gpu_name(self):
        return flow.cuda.get_device_name()

    def peak_flops(self):
        flow.comm.barrier()  # the last loss is there, its backward pass may not be over
        side = 8192 if self.opt.device == "cuda" else 1024
        kind = flow.float16 if self.opt.precision == "amp" else flow.float32
        a, b = (flow.randn(side, side).to(self.opt.device, kind) for _ in range(2))
        return peaks.peak_flops(lambda: flow.matmul(a, b)[0, 0].item(), side)

    def close(self):
        self.losses.close()
        flow.comm.barrier()


def everywhere(opt):
    """Return where a global tensor lies that is the same on all ranks."""
    return {"placement": flow.placement.all(opt.device), "sbp": flow.sbp.broadcast}


def sum_over_ranks(own):
    """Return the sum of a tensor that every rank has of its own."""
    added = own.to_global(flow.placement.all(own.device.type), flow.sbp.partial_sum)
    return added.to_global(sbp=flow.sbp.broadcast).to_local()


def set_up(opt):
    """Set threads and precision, before the first graph asks for them; the import has joined the ranks."""
    if opt.device == "cpu" and "OMP_NUM_THREADS" in os.environ:
        # No operator uses several threads; they are dealt out to as many threads as there are CPUs.
        session = session_context.GetDefaultSession()
        session.TryInit()
        resource = session.resource
        resource.cpu_device_num = int(os.environ["OMP_NUM_THREADS"])
        session.update_resource_eagerly(resource)
    os.environ["ONEFLOW_EP_CUDA_ENABLE_TF32_EXECUTION"] = "0" if opt.precision == "fp32" else "1"
    os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    if opt.precision == "fp32":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # OneFlow's own switch leaves out the convolutions


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    has_gpu = opt.device == "cuda" and flow.cuda.is_available()
    return {"capability": flow.cuda.get_device_capability() if has_gpu else None}


def facts():
    major, minor = divmod(sysconfig.get_cuda_version(), 1000)
    return {
        "framework_version": flow.__version__,
        "cuda": "{}.{}".format(major, minor // 10),
        "cuda_devices": flow.cuda.device_count(),
    }
