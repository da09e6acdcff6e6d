"""Weights, momenta and gradients, each in one piece of memory, as the kernels read them."""

import torch

from trainmark.workloads.resnet50.models.pytorch import named_tensors
from trainmark.workloads.resnet50.shared import tensors

ALIGNED = 64  # elements: a view starts where wide loads may


class Parameters:
    """The model's own parameters become views of `master`; `half` is their copy for the products."""

    def __init__(self, model, kind):
        self.named = named_tensors(model)
        trained = {name: tensor for name, tensor in self.named.items() if not tensors.is_statistic(name)}
        # Those that decay come first, so that a number says where decay ends.
        order = sorted(trained, key=lambda name: not tensors.is_decayed(name))
        starts, end = {}, 0
        for name in order:
            starts[name] = end
            end += -(-trained[name].numel() // ALIGNED) * ALIGNED
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
