"""Forward, backward, all-reduce and update of one batch; what PyTorch's step is, but fused.

Weights, momenta and gradients lie each in one piece of memory, as the kernels read them.
"""

import torch
import torch.distributed as dist
from torch.nn import functional as F

from trainmark.workloads.common import gradient_clock
from trainmark.workloads.common.frameworks import pytorch as framework
from trainmark.workloads.resnet50.fused import reference_ops
from trainmark.workloads.resnet50.fused.network import Passes, side_stream
from trainmark.workloads.resnet50.shared import tensors

ALIGNED_ELEMENTS = 64  # elements: a view starts where wide loads may


class FlatParameters:
    """The model's own parameters become views of `master`; `half` is their copy for the products."""

    def __init__(self, model, kind):
        self.named = model.named_tensors()
        trained = {name: tensor for name, tensor in self.named.items() if not tensors.is_statistic(name)}
        # Those that decay come first, so that a number says where decay ends.
        order = sorted(trained, key=lambda name: not tensors.is_decayed(name))
        starts, end = {}, 0
        for name in order:
            starts[name] = end
            end += -(-trained[name].numel() // ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS
            if tensors.is_decayed(name):
                self.decayed = end
        device = next(model.parameters()).device
        wide = torch.promote_types(kind, torch.float32)
        self.master, self.momentum, self.gradient = torch.zeros(3, end, device=device, dtype=wide)
        self.half = self.master if kind == wide else torch.zeros(end, device=device, dtype=kind)
        self.places = {name: (starts[name], trained[name].shape) for name in order}
        with torch.no_grad():
            for name, tensor in trained.items():
                view = self.view(self.master, name)
                view.copy_(tensor)
                tensor.data = view
            self.half.copy_(self.master)

    def view(self, flat, name):
        """As the model has it: a convolution's inputs lie last in memory, but stand second in the shape."""
        start, shape = self.places[name]
        if len(shape) == 4:
            outputs, inputs, rows, columns = shape
            return self.rows(flat, name).view(outputs, rows, columns, inputs).permute(0, 3, 1, 2)
        return flat[start : start + shape.numel()].view(shape)

    def rows(self, flat, name):
        """As a matrix with a row for every output."""
        start, shape = self.places[name]
        return flat[start : start + shape.numel()].view(shape[0], -1)

    def trained(self):
        return list(self.places)


def operations_for(device):
    if device.type == "cuda":
        from trainmark.workloads.resnet50.fused import triton_ops as kernels

        return kernels
    return reference_ops


BUCKET_ELEMENTS = 6_000_000  # gradients that are exchanged together: few calls, and early ones


class LossScaler(framework.LossScale):
    """The same with the state of PyTorch's own, and the overflow that kernels look for."""

    def __init__(self, opt, device):
        super().__init__(opt, device)
        self.overflow = torch.zeros((), device=device)

    def state_dict(self):
        return {"scale": self.value.item(), "_growth_tracker": self.growth.item()}

    def load_state_dict(self, state):
        self.load(state["scale"], state["_growth_tracker"])


class FusedStep:
    """Has the attributes of PyTorch's own step, so that the same training drives it."""

    def __init__(self, opt, model, device):
        self.model, self.recipe, self.ranks = model, opt.recipe, opt.world_size
        self.parameters = FlatParameters(model, framework.HALF.get(opt.precision, torch.float32))
        self.ops = operations_for(device)
        self.passes = Passes(self.parameters, self.ops, side_stream(device))
        self.rate, self.lam = torch.zeros((), device=device), torch.ones((), device=device)
        self.scaler = LossScaler(opt, device)
        self.gradient_clock = gradient_clock.Untimed()
        half, gradient = self.parameters.half, self.parameters.gradient
        names = "classifier.weight", "classifier.bias"
        self.classifier = [self.parameters.view(half, name).detach() for name in names]
        self.classifier_gradients = [self.parameters.view(gradient, name) for name in names]

    @torch.no_grad()
    def __call__(self, images, labels):
        features = self.passes.forward(images)
        loss, gradient = self.head(features.view(images.shape[0], -1, features.shape[1]).mean(1), labels)
        exchanged = GradientAllReduce(self.parameters, self.ranks)
        for layers in self.passes.backward(gradient):
            exchanged.ready(layers)
        exchanged.finish()
        if self.parameters.half.dtype == torch.float16:
            self.ops.find_overflow(self.parameters.gradient, self.scaler.overflow)
        shrink = 1 / (self.scaler.value * self.ranks)
        recipe = self.recipe
        self.ops.update(
            self.parameters, self.rate, shrink, self.scaler.overflow, recipe.momentum, recipe.weight_decay
        )
        self.scaler.update(self.scaler.overflow)
        return loss

    @torch.enable_grad()
    def head(self, features, labels):
        """The loss, and the gradient of the features; those of the classifier go to their places."""
        inputs = [part.detach().requires_grad_() for part in (features, *self.classifier)]
        logits = F.linear(*inputs).float()
        loss = F.cross_entropy(logits, labels, label_smoothing=self.recipe.label_smoothing)
        of_features, *of_classifier = torch.autograd.grad(loss * self.scaler.value, inputs)
        for place, gradient in zip(self.classifier_gradients, of_classifier):
            place.copy_(gradient)
        return loss.detach(), of_features

    def fallbacks(self):
        return self.ops.fallbacks()

    def momentum(self, name, tensor):
        return self.parameters.view(self.parameters.momentum, name)

    def after_load(self):
        """The weights were set from outside: the copies for the products follow."""
        if self.parameters.half is not self.parameters.master:
            self.parameters.half.copy_(self.parameters.master)


class GradientAllReduce:
    """Sums gradients over the ranks while those of earlier layers are still being computed."""

    def __init__(self, parameters, ranks):
        self.flat, self.decayed, self.ranks = parameters.gradient, parameters.decayed, ranks
        self.end, self.under_way = parameters.decayed, []

    def ready(self, layers):
        """From these layers on, weights have their gradients; they lie in the order of the forward pass."""
        if self.ranks > 1:
            first = getattr(layers, "first", layers).gradient
            start = first.storage_offset() - self.flat.storage_offset()
            if self.end - start >= BUCKET_ELEMENTS or start == 0:
                self.send(start, self.end)
                self.end = start

    def send(self, start, end):
        self.under_way.append(dist.all_reduce(self.flat[start:end], async_op=True))

    def finish(self):
        if self.ranks > 1:
            self.send(self.decayed, self.flat.numel())
            for work in self.under_way:
                work.wait()
