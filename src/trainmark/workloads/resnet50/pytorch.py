"""ResNet-50 v1.5 in PyTorch: the model, the data, the step, main."""

import contextlib
import functools
import inspect
import itertools
import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainmark import probe
from trainmark.workloads.resnet50.shared import (
    clocks,
    gradient_clock,
    loop,
    options,
    recipe,
    synthetic,
    tensors,
    torch_ranks,
)

HALF = {"amp": torch.float16, "bf16": torch.bfloat16}
timed_event = functools.partial(torch.cuda.Event, enable_timing=True)

# The model


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * recipe.EXPANSION
        self.conv1, self.bn1 = conv(inputs, width, 1), batch_norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), batch_norm(width)  # v1.5: the stride is here
        self.conv3, self.bn3 = conv(width, outputs, 1), batch_norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), batch_norm(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            conv(3, 64, 7, 2), batch_norm(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
        )
        blocks, channels = [], 64
        for stage, (depth, width) in enumerate(recipe.STAGES):
            for block in range(depth):
                blocks.append(Bottleneck(channels, width, stride=2 if block == 0 and stage > 0 else 1))
                channels = width * recipe.EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels, recipe.CLASSES)
        nn.init.kaiming_normal_(self.classifier.weight, mode="fan_in", nonlinearity="linear")
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean(dim=(2, 3)))


def conv(inputs, outputs, kernel, stride=1):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    return layer


def batch_norm(channels):
    return nn.BatchNorm2d(channels, eps=recipe.BATCH_NORM_EPSILON, momentum=recipe.BATCH_NORM_MOMENTUM)


def build_model(opt, device):
    torch.manual_seed(opt.seed)  # the same weights on every rank
    model = ResNet50().to(device, memory_format=memory_format(opt))
    if opt.world_size > 1:
        # PyTorch 2.13 gave the argument that keeps batch-norm statistics each rank's own a new name.
        known = inspect.signature(DistributedDataParallel).parameters
        own = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        local = [device.index] if device.type == "cuda" else None
        model = DistributedDataParallel(model, local, gradient_as_bucket_view=True, **{own: False})
    return torch.compile(model) if opt.compile else model


def named_tensors(model):
    """Every tensor by its canonical name; modules come in the order of the canonical layers."""
    kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
    found = {}
    for layer, module in zip(tensors.layers(), (m for m in model.modules() if isinstance(m, kinds))):
        if layer.kind == "norm":
            parts = module.weight, module.bias, module.running_mean, module.running_var
            found.update(zip(tensors.names(layer), parts))
        else:
            found.update(zip(tensors.names(layer), module.parameters()))
    return found


def memory_format(opt):
    return torch.channels_last if opt.layout == "NHWC" else torch.contiguous_format


# The data


def batches(opt, device):
    """An endless stream: one batch that lives on the device, or several copied to it step by step."""
    if opt.data == "synthetic":
        return itertools.repeat(synthetic_batch(opt, device))
    pool = [place(opt, "cpu", *batch) for batch in synthetic.batches(opt, synthetic.BATCHES)]
    return copied(pool, device) if device.type == "cuda" else itertools.cycle(pool)


def synthetic_batch(opt, device):
    return place(opt, device, *synthetic.batches(opt, 1)[0])


def place(opt, device, images, labels):
    """Host arrays, images as NCHW, on the device and in the layout that was asked for."""
    images = torch.from_numpy(images).to(device).contiguous(memory_format=memory_format(opt))
    return images, torch.from_numpy(labels).to(device)


def copied(pool, device):
    """The batches of the pool in turn, each copied on a stream of its own while the one before is in use."""
    pool = [(images.pin_memory(), labels.pin_memory()) for images, labels in pool]
    buffers = [tuple(torch.empty_like(tensor, device=device) for tensor in pool[0]) for _ in range(2)]
    compute, copying = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    arriving = None
    for index in itertools.count():
        images, labels = buffers[index % 2]
        compute.wait_stream(copying)  # for the batch handed out below
        copying.wait_stream(compute)  # for the step that has used this buffer
        with torch.cuda.stream(copying):
            images.copy_(pool[index % len(pool)][0], non_blocking=True)
            labels.copy_(pool[index % len(pool)][1], non_blocking=True)
        if arriving is not None:
            yield arriving
        arriving = images, labels


# The step


class Step:
    """Forward, backward and update of one batch; `rate` and `loss` stay on the device."""

    def __init__(self, opt, model, device):
        self.model = model
        self.gradient_clock = watched(opt, model, device)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=recipe.LABEL_SMOOTHING)
        self.rate = torch.zeros((), device=device)
        norms, others = [], []
        for module in model.modules():
            kind = norms if isinstance(module, nn.BatchNorm2d) else others
            kind.extend(module.parameters(recurse=False))
        self.optimizer = torch.optim.SGD(
            [{"params": norms, "weight_decay": 0.0}, {"params": others}],
            lr=self.rate,
            momentum=recipe.MOMENTUM,
            weight_decay=recipe.WEIGHT_DECAY,
            fused=True,  # reads loss scale and rate on the device: no wait, and a graph can capture it
        )
        for parameter in norms + others:
            # Left to itself the fused update takes memory as it finds it when the first step overflows.
            self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        half = HALF.get(opt.precision)
        self.autocast = contextlib.nullcontext
        if half is not None:
            self.autocast = lambda: torch.autocast(device.type, half, cache_enabled=not opt.cuda_graph)
        self.static_scale = None if opt.loss_scale == "dynamic" else opt.loss_scale
        self.scaler = torch.amp.GradScaler(
            device.type, init_scale=self.static_scale or 2.0**16, enabled=opt.precision == "amp"
        )

    def __call__(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.criterion(self.model(images), labels)
        with self.gradient_clock:
            self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update(self.static_scale)  # set anew, a static scale neither grows nor backs off
        return loss.detach()


def watched(opt, model, device):
    """A clock that tells a rank's computing from its waiting for the gradients of the others."""
    if opt.world_size == 1:
        return gradient_clock.Untimed()
    on_device = gradient_clock.EventMarks(timed_event)
    marks = on_device if device.type == "cuda" else gradient_clock.HostMarks()
    return gradient_clock.GradientClock(getattr(model, "_orig_mod", model), marks)  # what was compiled


class CapturedStep:
    """The same step, recorded once as a CUDA graph and replayed on the same addresses."""

    def __init__(self, step, images, labels):
        self.images, self.labels = images.clone(), labels.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # allocator, cuDNN's choices and the compiler must have come to rest
                step(self.images, self.labels)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = step(self.images, self.labels)

    def __call__(self, images, labels):
        self.images.copy_(images, non_blocking=True)
        self.labels.copy_(labels, non_blocking=True)
        self.graph.replay()
        return self.loss


# Main


class Training:
    """The verbs of the shared loop; see `shared/loop.py`."""

    def __init__(self, opt):
        self.opt = opt
        self.device = begin(opt)
        self.update = Step(opt, build_model(opt, self.device), self.device)
        # The rate is still zero here: what warms the capture up does not move the weights.
        captured = opt.cuda_graph and CapturedStep(self.update, *next(self.batches()))
        self.take = captured or self.update
        self.gradient_clock = self.update.gradient_clock
        self.read = Readback(self.device)

    def batches(self):
        return batches(self.opt, self.device)

    def place(self, images, labels):
        return place(self.opt, self.device, images, labels)

    def step(self, images, labels, rate):
        self.update.rate.fill_(rate)
        return self.take(images, labels)

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    @torch.no_grad()
    def load(self, values):
        for name, tensor in named_tensors(self.update.model).items():
            tensor.copy_(torch.from_numpy(values[name]))
        for state in self.update.optimizer.state.values():
            state["momentum_buffer"].zero_()

    def tensors(self):
        named = named_tensors(self.update.model)
        # Copied: on the CPU an array would share the memory that the next step writes.
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in named.items()}

    def clock(self):
        return clocks.EventClock(timed_event) if self.device.type == "cuda" else None

    def memory(self):
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return options.process_memory_peak()

    def device_name(self):
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    def peak_flops(self):
        side = 8192 if self.device.type == "cuda" else 1024
        kind = HALF.get(self.opt.precision, torch.float32)
        a, b = (torch.randn(side, side, device=self.device, dtype=kind) for _ in range(2))
        return loop.peak_flops(lambda: a @ b, side, self.clock() or probe.HostClock())

    def close(self):
        if self.opt.world_size > 1:
            dist.destroy_process_group()


def begin(opt):
    """The device, with its precision and its ranks set."""
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
    """Refuses what this device cannot do; asked before anything starts."""
    if opt.device == "cuda" and not torch.cuda.is_available():
        raise options.Refusal(
            "PyTorch sees no CUDA device here; use --device cpu or a CUDA build of PyTorch."
        )
    options.check_hardware(opt, torch.cuda.get_device_capability() if opt.device == "cuda" else None)
    if opt.cuda_graph and opt.world_size > 1:
        raise options.Refusal("the whole-step CUDA graph is built for one rank; leave cuda_graph out.")
    if opt.compile and opt.device == "cpu" and not (shutil.which("c++") or shutil.which("g++")):
        raise options.Refusal(
            "torch.compile on the CPU needs a C++ compiler; install g++ or leave compile out."
        )


def facts():
    return {
        "framework_version": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None,
        "cuda_devices": torch.cuda.device_count(),
    }


if __name__ == "__main__":
    loop.main("pytorch", Training, check, facts)
