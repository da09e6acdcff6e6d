"""Training ResNet-50 v1.5 in PyTorch: the model, the data, the step, main."""

import contextlib
import functools
import inspect
import itertools
import shutil
from importlib.util import find_spec

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainmark import probe
from trainmark.workloads.common import peaks
from trainmark.workloads.common.clocks import gradient_clock
from trainmark.workloads.common.optimizer import lars, loss_scale, mixup
from trainmark.workloads.common.ranks import torch_ranks
from trainmark.workloads.common.training import Training as CommonTraining
from trainmark.workloads.images import augment
from trainmark.workloads.resnet50.models.pytorch import ResNet50, named_tensors
from trainmark.workloads.resnet50.shared import program, refusals, synthetic, tensors

HALF = {"amp": torch.float16, "bf16": torch.bfloat16}
timed_event = functools.partial(torch.cuda.Event, enable_timing=True)

# The model


def build_model(opt, device):
    torch.manual_seed(opt.seed)  # the same weights on every rank
    model = ResNet50().to(device, memory_format=memory_format(opt))
    if opt.world_size > 1 and opt.engine == "stock":
        # PyTorch 2.13 gave the argument that keeps batch-norm statistics each rank's own a new name.
        known = inspect.signature(DistributedDataParallel).parameters
        own = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        local = [device.index] if device.type == "cuda" else None
        model = DistributedDataParallel(model, local, gradient_as_bucket_view=True, **{own: False})
    return torch.compile(model, mode=opt.compile) if opt.compile else model


def memory_format(opt):
    return torch.channels_last if opt.layout == "NHWC" else torch.contiguous_format


# The data


def batches(opt, device, resident):
    """Return an endless stream: one batch that stays on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(resident)
    pool = [place(opt, "cpu", *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
    if device.type == "cpu":
        return itertools.cycle(pool)
    return prefetch(itertools.cycle([tuple(part.pin_memory() for part in batch) for batch in pool]), device)


def synthetic_batch(opt, device):
    return place(opt, device, *synthetic.batches(opt, 1)[0])


def place(opt, device, images, labels):
    """Copy host arrays, images as NCHW, to the device in the layout that was asked for."""
    images = torch.from_numpy(images).to(device).contiguous(memory_format=memory_format(opt))
    return images, torch.from_numpy(labels).to(device)


def normalise(opt, device, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    moments = augment.MEAN, augment.DEVIATION
    mean, deviation = (torch.tensor(part, device=device).view(3, 1, 1) for part in moments)
    loaded = (tuple(map(torch.from_numpy, batch)) for batch in loaded)
    for images, labels in prefetch(loaded, device) if device.type == "cuda" else loaded:
        images = (images.permute(0, 3, 1, 2) - mean) / deviation
        yield images.contiguous(memory_format=memory_format(opt)), labels.to(device, copy=True)


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


# The step


class Step:
    """Forward, backward and update of one batch; `rate`, `lam` and the loss stay on the device."""

    def __init__(self, opt, model, device):
        self.model = model
        self.gradient_clock = make_gradient_clock(opt, model, device)
        self.recipe = opt.recipe
        self.criterion = nn.CrossEntropyLoss(label_smoothing=opt.recipe.label_smoothing)
        self.rate, self.lam = torch.zeros((), device=device), torch.ones((), device=device)
        self.is_lars = opt.recipe.optimizer == "lars"
        norms, others = [], []
        for module in model.modules():
            group = norms if isinstance(module, nn.BatchNorm2d) else others
            group.extend(module.parameters(recurse=False))
        self.optimizer = torch.optim.SGD(
            [{"params": norms, "weight_decay": 0.0}, {"params": others}],
            lr=torch.ones((), device=device) if self.is_lars else self.rate,
            momentum=opt.recipe.momentum,
            weight_decay=0.0 if self.is_lars else opt.recipe.weight_decay,
            fused=True,  # reads loss scale and rate on the device: no wait, and a graph can capture it
        )
        for parameter in norms + others:
            # Left to itself the fused update takes memory as it finds it when the first step overflows.
            self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        self.autocast = make_autocast(opt, device)
        self.static_scale = None if opt.loss_scale == "dynamic" else opt.loss_scale
        self.scaler = torch.amp.GradScaler(
            device.type, init_scale=loss_scale.initial(opt), enabled=opt.precision == "amp"
        )

    def __call__(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.mixup_loss(images, labels) if self.recipe.mixup else self.loss(images, labels)
        with self.gradient_clock:
            self.scaler.scale(loss).backward()
        if self.is_lars:
            self.scaler.unscale_(self.optimizer)
            self.apply_lars()
        self.scaler.step(self.optimizer)
        self.scaler.update(self.static_scale)  # set anew, a static scale neither grows nor backs off
        return loss.detach()

    def loss(self, images, labels):
        return self.criterion(self.model(images), labels)

    def mixup_loss(self, images, labels):
        """Return the cross-entropy of a mixup batch (Zhang et al. 2018)."""
        logits = self.model(mixup.mix(images, images.flip(0), self.lam))
        return mixup.mix(self.criterion(logits, labels), self.criterion(logits, labels.flip(0)), self.lam)

    @torch.no_grad()
    def apply_lars(self):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for parameter in self.model.parameters():
            gradient = parameter.grad
            if lars.is_excluded(parameter.ndim):
                gradient.mul_(self.rate)
                continue
            weight_norm, gradient_norm = parameter.norm(), gradient.norm()
            ratio = lars.trust_ratio(weight_norm, gradient_norm, trust, decay)
            ratio = torch.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
            gradient.add_(parameter, alpha=decay).mul_(self.rate * ratio)

    def momentum(self, name, tensor):
        return self.optimizer.state[tensor]["momentum_buffer"]

    def after_load(self):
        """The weights were set from outside; there is nothing that must follow."""

    def fallbacks(self):
        return []


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


def step_class(opt):
    """Return the one above, or the one that we fused by hand."""
    if opt.engine == "fused":
        from trainmark.workloads.resnet50.fused.step import Step as FusedStep

        return FusedStep
    return Step


class CapturedStep:
    """The same step, recorded once as a CUDA graph and replayed on the same addresses: those of its batch."""

    def __init__(self, step, images, labels):
        self.images, self.labels = images, labels
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # allocator, cuDNN's choices and the compiler must have come to rest
                step(self.images, self.labels)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        # Before what a step has on a stream beside: that only fills the gaps.
        with torch.cuda.graph(self.graph, stream=torch.cuda.Stream(priority=-1)):
            self.loss = step(self.images, self.labels)

    def __call__(self, images, labels):
        if images is not self.images:
            self.images.copy_(images, non_blocking=True)
            self.labels.copy_(labels, non_blocking=True)
        self.graph.replay()
        return self.loss


# Main


class Training(CommonTraining):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.device = set_up(opt)
        model = build_model(opt, self.device)
        self.plain = next(module for module in model.modules() if isinstance(module, ResNet50))
        self.update = step_class(opt)(opt, model, self.device)
        resident = opt.data == "synthetic" or opt.cuda_graph
        self.resident = synthetic_batch(opt, self.device) if resident else None
        # The rate is still zero here: what warms the capture up does not move the weights.
        captured = opt.cuda_graph and CapturedStep(self.update, *self.resident)
        self.run_step = captured or self.update
        self.gradient_clock = self.update.gradient_clock
        self.read = Readback(self.device)

    def batches(self):
        return batches(self.opt, self.device, self.resident)

    def place(self, images, labels):
        return place(self.opt, self.device, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, self.device, loaded)

    def allocate(self, shape, dtype):
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        return torch.empty(shape, dtype=kind, pin_memory=self.device.type == "cuda").numpy()

    def step(self, images, labels, rate, lam=1.0):
        self.update.rate.fill_(rate)
        self.update.lam.fill_(lam)
        return self.run_step(images, labels)

    @torch.no_grad()
    def evaluate(self, images, labels):
        self.plain.eval()
        with make_autocast(self.opt, self.device)():
            best = self.plain(images).topk(5).indices
        self.plain.train()
        correct = best == labels[:, None]
        return torch.stack([correct[:, 0].sum(), correct.sum()]).tolist

    def total(self, numbers):
        added = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        if self.opt.world_size > 1:
            dist.all_reduce(added)
        return added.tolist()

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    @torch.no_grad()
    def load(self, values, momenta=None, rest=None):
        for name, tensor in named_tensors(self.plain).items():
            tensor.copy_(torch.from_numpy(values[name]))
        for name, momentum in self.momentum_buffers():
            momentum.copy_(torch.from_numpy(momenta[name])) if momenta else momentum.zero_()
        if rest:
            self.update.scaler.load_state_dict(dict(self.update.scaler.state_dict(), **rest))
        self.update.after_load()

    def tensors(self):
        return on_host(named_tensors(self.plain).items())

    def momenta(self):
        return on_host(self.momentum_buffers())

    def momentum_buffers(self):
        for name, tensor in named_tensors(self.plain).items():
            if not tensors.is_statistic(name):
                yield name, self.update.momentum(name, tensor)

    def rest(self):
        state = self.update.scaler.state_dict()
        return {name: state[name] for name in ("scale", "_growth_tracker") if name in state}

    def fallbacks(self):
        return self.update.fallbacks()

    def clock(self):
        return probe.EventClock(timed_event) if self.device.type == "cuda" else None

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
            dist.destroy_process_group()


def on_host(named):
    # Copied: on the CPU an array would share the memory that the next step writes.
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in named}


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


class Readback:
    """Losses copied to the host in stream order, so that reading one waits for nothing."""

    def __init__(self, device):
        slots = torch.zeros(probe.MOST_PENDING + 2, pin_memory=device.type == "cuda")
        self.slots = itertools.cycle(slots.unbind())

    def __call__(self, loss):
        slot = next(self.slots)
        slot.copy_(loss, non_blocking=True)
        return slot.item


def check(opt):
    """Refuse what PyTorch cannot do on this machine; asked before anything starts."""
    has_gpu = opt.device == "cuda" and torch.cuda.is_available()
    capability = torch.cuda.get_device_capability() if has_gpu else None
    compiler = bool(shutil.which("c++") or shutil.which("g++"))
    refusals.check("pytorch", opt, capability, triton=find_spec("triton") is not None, cxx=compiler)


def facts():
    return {
        "framework_version": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None,
        "cuda_devices": torch.cuda.device_count(),
    }


if __name__ == "__main__":
    program.main("pytorch", Training, check, facts)
