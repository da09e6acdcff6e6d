"""Both gradients of a 1×1 convolution, by the way that is fastest for its shape on this device."""

import torch

from trainmark.workloads.resnet50.fused.kernels import channels, stopping, together, tuning
from trainmark.workloads.resnet50.fused.kernels.ending import Ending
from trainmark.workloads.resnet50.fused.kernels.product import candidates, multiply
from trainmark.workloads.resnet50.fused.kernels.product_back import product_back
from trainmark.workloads.resnet50.fused.kernels.weight_gradient import weight_gradient

TOGETHER, FUSED, APART = "together", "fused", "apart"


def product_gradients(s, x, conv, onto=None, addend=None, spread=None):
    """That of the weights goes to its place; returned is the operand's, with the sums that follow."""
    end = Ending(onto, addend, spread)
    ways = {TOGETHER: _together, FUSED: _fused, APART: _apart}

    def launch(way):
        return ways[way](s, x, conv, end)

    weight = conv.weight
    key = s.upper.shape[0], *weight.shape, s.rectify, type(x).__name__, end.stop, end.adds, weight.dtype
    fitting = {
        TOGETHER: onto is x and together.candidates(weight),
        FUSED: candidates(*weight.shape),
        APART: True,
    }
    tried = [way for way, fits in fitting.items() if fits]
    way = tuning.tuner.choose("product_gradients", key, tried, launch, weight.device)
    out, partial = launch(way)
    return out, end.sums(partial)


def _together(s, x, conv, end):
    """All in one pass, where the operand is also what stops its gradient."""
    return together.together(s, conv, end)


def _fused(s, x, conv, end):
    """The gradient in front of the norm is computed in both products, and stored by neither."""
    weight_gradient(s, x, conv.gradient)
    return product_back(s, conv.weight, end)


def _apart(s, x, conv, end):
    """It is stored once, and the products are the library's."""
    gradient = channels.apply(s, out=torch.empty_like(s.upper))
    multiply(gradient.T, channels.computed(x), conv.gradient)
    out = gradient @ conv.weight
    return out, stopping.stopped(out, end)
