"""PyTorch's part of every training: the device and its ranks, precision, clock, peaks, copies, facts."""

import contextlib
import functools
import itertools
import shutil
from importlib.util import find_spec

import numpy as np
import torch
import torch.distributed as dist

from trainmark import probe
from trainmark.workloads.common import gradient_clock, optimizer, peaks, torch_ranks
from trainmark.workloads.common.training import Training as CommonTraining

HALF = {"amp": torch.float16, "bf16": torch.bfloat16}
timed_event = functools.partial(torch.cuda.Event, enable_timing=True)


class Training(CommonTraining):
    """The verbs of `common/training.py` that do not depend on the model; a family's class has the others."""

    def __init__(self, opt):
        self.opt = opt
        self.device = set_up(opt)
        self.read = Readback(self.device)

    def allocate(self, shape, dtype):
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        return torch.empty(shape, dtype=kind, pin_memory=self.device.type == "cuda").numpy()

    def place(self, *arrays):
        return self.place_on(self.device, *arrays)

    def place_on(self, device, *arrays):
        return tuple(torch.from_numpy(array).to(device) for array in arrays)

    def cycled(self, batches):
        pool = [self.place_on("cpu", *batch) for batch in batches]
        if self.device.type == "cpu":
            return itertools.cycle(pool)
        pinned = [tuple(part.pin_memory() for part in batch) for batch in pool]
        return prefetch(itertools.cycle(pinned), self.device)

    def total(self, numbers):
        added = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        if self.opt.world_size > 1:
            dist.all_reduce(added)
        return added.tolist()

    def clock(self):
        return probe.EventClock(timed_event) if self.device.type == "cuda" else None

    def profiler(self):
        from trainmark.inside.profiler import pytorch as profiler

        models = [value for value in vars(self).values() if isinstance(value, torch.nn.Module)]
        return profiler.Profiler([self.update], models)

    def device_memory(self):
        return torch.cuda.max_memory_allocated(self.device)

    def gpu_name(self):
        return torch.cuda.get_device_name(self.device)

    def peak_flops(self):
        side = 8192 if self.device.type == "cuda" else 1024
        kind = HALF.get(self.opt.precision, torch.float32)
        a, b = (torch.randn(side, side, device=self.device, dtype=kind) for _ in range(2))
        return peaks.peak_flops(lambda: a @ b, side, self.clock())

    def peak_bandwidth(self):
        # Larger than any cache, and small enough to fit beside a step that fills the memory.
        size, copies = (2**26, peaks.COPIES) if self.device.type == "cuda" else (2**25, 1)
        source, target = (torch.zeros(size, device=self.device) for _ in range(2))
        seconds = peaks.shortest(lambda: [target.copy_(source) for _ in range(copies)], self.clock())
        return 2 * copies * source.nbytes / seconds

    def close(self):
        if self.opt.world_size > 1:
            vars(self).clear()  # DistributedDataParallel holds the group
            torch_ranks.leave()


def set_up(opt):
    """Return the device, with its precision set and its ranks joined."""
    device = torch.device(opt.device, opt.local_rank if opt.device == "cuda" else None)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    # The newer `fp32_precision` breaks torch.compile in PyTorch 2.9 and 2.10.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = opt.precision != "fp32"
    if opt.world_size > 1:
        torch_ranks.join("nccl" if device.type == "cuda" else "gloo")
    return device


def make_autocast(opt, device):
    """Return the context in which products take halves, where the precision says so."""
    half = HALF.get(opt.precision)
    if half is None:
        return contextlib.nullcontext
    return lambda: torch.autocast(device.type, half, cache_enabled=not opt.cuda_graph)


def make_gradient_clock(opt, model, device):
    """Return a clock that tells a rank's computing from its waiting for the gradients of the others."""
    if opt.world_size == 1:
        return gradient_clock.Untimed()
    on_device = gradient_clock.EventMarks(timed_event)
    marks = on_device if device.type == "cuda" else gradient_clock.HostMarks()
    return gradient_clock.GradientClock(getattr(model, "_orig_mod", model), marks)  # what was compiled


def prefetch(source, device):
    """Copy batches in pinned memory on a stream of its own, each while the one before is in use."""
    compute, copying = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    buffers, arriving, before = None, None, None
    for index, batch in enumerate(source):
        if buffers is None:
            buffers = [tuple(torch.empty_like(part, device=device) for part in batch) for _ in range(2)]
        here = buffers[index % 2]
        compute.wait_stream(copying)  # for the batch handed out below
        copying.wait_stream(compute)  # for the step that has used this buffer
        with torch.cuda.stream(copying):
            for part, host in zip(here, batch):
                part.copy_(host, non_blocking=True)
            copied = copying.record_event()
        if arriving is not None:
            yield arriving
        if before is not None:
            before.synchronize()  # the source writes a batch anew when two more are asked for
        arriving, before = here, copied
    if arriving is not None:
        compute.wait_stream(copying)
        yield arriving


def on_host(named):
    # Copied: on the CPU an array would share the memory that the next step writes.
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in named}


class Readback:
    """Losses copied to the host in stream order, so that reading one waits for nothing."""

    def __init__(self, device):
        slots = torch.zeros(probe.MOST_PENDING + 2, pin_memory=device.type == "cuda")
        self.slots = itertools.cycle(slots.unbind())

    def __call__(self, loss):
        slot = next(self.slots)
        slot.copy_(loss, non_blocking=True)
        return slot.item


class LossScale:
    """The loss scale of `amp` on the device: halved by an overflow, doubled after steps without one."""

    def __init__(self, opt, device):
        self.enabled, self.dynamic = opt.precision == "amp", opt.loss_scale == "dynamic"
        self.value = torch.full((), optimizer.initial_loss_scale(opt), device=device)
        self.growth = torch.zeros((), dtype=torch.int32, device=device)

    def update(self, overflow):
        """Follow a step whose gradients had an `overflow`, 1.0 or 0.0."""
        if self.enabled and self.dynamic:
            growth_steps = optimizer.LOSS_SCALE_GROWTH_STEPS
            torch._amp_update_scale_(self.value, self.growth, overflow, 2.0, 0.5, growth_steps)

    def load(self, value, growth):
        self.value.fill_(value)
        self.growth.fill_(int(growth))


def machine(opt):
    """Return what the tables of refusals ask of this machine."""
    has_gpu = opt.device == "cuda" and torch.cuda.is_available()
    return {
        "capability": torch.cuda.get_device_capability() if has_gpu else None,
        "triton": find_spec("triton") is not None,
        "cxx": bool(shutil.which("c++") or shutil.which("g++")),
    }


def facts():
    return {
        "framework_version": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None,
        "cuda_devices": torch.cuda.device_count(),
    }
