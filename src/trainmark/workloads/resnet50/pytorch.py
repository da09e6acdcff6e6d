"""ResNet-50 v1.5 in PyTorch: the model, the data, the step, main."""

import inspect
import itertools

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainmark.workloads.common import optimizer
from trainmark.workloads.common.frameworks import pytorch as framework
from trainmark.workloads.images import sampling
from trainmark.workloads.resnet50.shared import data, program, recipe, tensors

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
        if recipe.has_shortcut(inputs, width, stride):
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
        self.blocks = nn.Sequential(*(Bottleneck(*block) for block in recipe.bottlenecks()))
        self.classifier = nn.Linear(recipe.features(), recipe.CLASSES)
        nn.init.kaiming_normal_(self.classifier.weight, mode="fan_in", nonlinearity="linear")
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.classifier(x.mean(dim=(2, 3)))

    def named_tensors(self):
        """Every tensor by its canonical name; modules come in the order of the canonical layers."""
        kinds = (nn.Conv2d, nn.BatchNorm2d, nn.Linear)
        named = {}
        for layer, module in zip(tensors.layers(), (m for m in self.modules() if isinstance(m, kinds))):
            if layer.kind == "norm":
                parts = module.weight, module.bias, module.running_mean, module.running_var
                named.update(zip(tensors.tensor_names(layer), parts))
            else:
                named.update(zip(tensors.tensor_names(layer), module.parameters()))
        return named


def conv(inputs, outputs, kernel, stride=1):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    return layer


def batch_norm(channels):
    return nn.BatchNorm2d(channels, eps=recipe.BATCH_NORM_EPSILON, momentum=recipe.BATCH_NORM_MOMENTUM)


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


def place(opt, device, images, labels):
    """Copy host arrays, images as NCHW, to the device in the layout that was asked for."""
    images = torch.from_numpy(images).to(device).contiguous(memory_format=memory_format(opt))
    return images, torch.from_numpy(labels).to(device)


def normalise(opt, device, loaded):
    """Copy a loader's batches to the device; there, and not before, pixels become float32."""
    moments = sampling.MEAN, sampling.DEVIATION
    mean, deviation = (torch.tensor(part, device=device).view(3, 1, 1) for part in moments)
    loaded = (tuple(map(torch.from_numpy, batch)) for batch in loaded)
    for images, labels in framework.prefetch(loaded, device) if device.type == "cuda" else loaded:
        images = (images.permute(0, 3, 1, 2) - mean) / deviation
        yield images.contiguous(memory_format=memory_format(opt)), labels.to(device, copy=True)


# The step


class Step:
    """Forward, backward and update of one batch; `rate`, `lam` and the loss stay on the device."""

    def __init__(self, opt, model, device):
        self.model = model
        self.gradient_clock = framework.make_gradient_clock(opt, model, device)
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
        self.autocast = framework.make_autocast(opt, device)
        self.static_scale = None if opt.loss_scale == "dynamic" else opt.loss_scale
        self.scaler = torch.amp.GradScaler(
            device.type, init_scale=optimizer.initial_loss_scale(opt), enabled=opt.precision == "amp"
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
        logits = self.model(optimizer.mixup(images, images.flip(0), self.lam))
        return optimizer.mixup(
            self.criterion(logits, labels), self.criterion(logits, labels.flip(0)), self.lam
        )

    @torch.no_grad()
    def apply_lars(self):
        """Scale each layer's gradient by the rate and its LARS trust ratio (You et al. 2017)."""
        trust, decay = self.recipe.trust, self.recipe.weight_decay
        for parameter in self.model.parameters():
            gradient = parameter.grad
            if optimizer.is_excluded_from_lars(parameter.ndim):
                gradient.mul_(self.rate)
                continue
            weight_norm, gradient_norm = parameter.norm(), gradient.norm()
            ratio = optimizer.lars_trust_ratio(weight_norm, gradient_norm, trust, decay)
            ratio = torch.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
            gradient.add_(parameter, alpha=decay).mul_(self.rate * ratio)

    def momentum(self, name, tensor):
        return self.optimizer.state[tensor]["momentum_buffer"]

    def after_load(self):
        """The weights were set from outside; there is nothing that must follow."""

    def fallbacks(self):
        return []


def step_class(opt):
    """Return the one above, or the one that we fused by hand."""
    if opt.engine == "fused":
        from trainmark.workloads.resnet50.fused.step import FusedStep as FusedStep

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


class Training(data.ImageTraining, framework.Training):
    """The verbs of the loop; see `common/training.py`."""

    def __init__(self, opt):
        super().__init__(opt)
        model = build_model(opt, self.device)
        self.plain = next(module for module in model.modules() if isinstance(module, ResNet50))
        self.update = step_class(opt)(opt, model, self.device)
        resident = opt.data == "synthetic" or opt.cuda_graph
        self.resident = self.place(*self.host_batches(1)[0]) if resident else None
        # The rate is still zero here: what warms the capture up does not move the weights.
        captured = opt.cuda_graph and CapturedStep(self.update, *self.resident)
        self.run_step = captured or self.update
        self.gradient_clock = self.update.gradient_clock

    def batches(self):
        # The very batch that a step was captured with, which then need not be copied.
        return itertools.repeat(self.resident) if self.opt.data == "synthetic" else super().batches()

    def place_on(self, device, images, labels):
        return place(self.opt, device, images, labels)

    def feed(self, loaded):
        return normalise(self.opt, self.device, loaded)

    def step(self, images, labels, rate, lam=1.0):
        self.update.rate.fill_(rate)
        self.update.lam.fill_(lam)
        return self.run_step(images, labels)

    @torch.no_grad()
    def evaluate(self, images, labels):
        self.plain.eval()
        with framework.make_autocast(self.opt, self.device)():
            best = self.plain(images).topk(5).indices
        self.plain.train()
        correct = best == labels[:, None]
        return torch.stack([correct[:, 0].sum(), correct.sum()]).tolist

    def parameters(self):
        return sum(parameter.numel() for parameter in self.update.model.parameters())

    @torch.no_grad()
    def load(self, values, momenta=None, rest=None):
        for name, tensor in self.plain.named_tensors().items():
            tensor.copy_(torch.from_numpy(values[name]))
        for name, momentum in self.momentum_buffers():
            momentum.copy_(torch.from_numpy(momenta[name])) if momenta else momentum.zero_()
        if rest:
            self.update.scaler.load_state_dict(dict(self.update.scaler.state_dict(), **rest))
        self.update.after_load()

    def tensors(self):
        return framework.on_host(self.plain.named_tensors().items())

    def momenta(self):
        return framework.on_host(self.momentum_buffers())

    def momentum_buffers(self):
        for name, tensor in self.plain.named_tensors().items():
            if not tensors.is_statistic(name):
                yield name, self.update.momentum(name, tensor)

    def rest(self):
        state = self.update.scaler.state_dict()
        return {name: state[name] for name in ("scale", "_growth_tracker") if name in state}

    def fallbacks(self):
        return self.update.fallbacks()


if __name__ == "__main__":
    program.main(framework, Training)
