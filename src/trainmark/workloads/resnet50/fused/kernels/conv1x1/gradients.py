"""Both gradients of a 1×1 convolution, by the way that is fastest for its shape on this device."""

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels import channels
from trainmark.workloads.resnet50.fused.kernels.conv1x1 import dgrad_wgrad, relu_backward
from trainmark.workloads.resnet50.fused.kernels.conv1x1.ending import Ending
from trainmark.workloads.resnet50.fused.kernels.conv1x1.product import multiply
from trainmark.workloads.resnet50.fused.side_stream import AT_ONCE

TOGETHER, APART = "together", "apart"


def product_gradients(s, x, conv, beside, onto=None, addend=None, spread=None):
    """That of the weights goes to its place, in time; given is the operand's, with the sums that follow."""
    end = Ending(onto, addend, spread)
    gradient = channels.apply(s)

    def launch(way, beside=AT_ONCE):
        if way == TOGETHER:
            return dgrad_wgrad.together(gradient, conv, end)
        return _apart(gradient, x, conv, end, beside)

    weight = conv.weight
    key = s.upper.shape[0], *weight.shape, type(x).__name__, end.stop, end.adds, weight.dtype
    # In one pass, the operand is also what stops its gradient.
    ways = [TOGETHER, APART] if onto is x and dgrad_wgrad.candidates(weight) else [APART]
    way = tuning.tuner.choose("product_gradients", key, ways, launch, weight.device)
    out, partial = launch(way, beside)
    return out, end.sums(partial)


def _apart(gradient, x, conv, end, beside):
    """The products are the library's."""
    operand = channels.computed(x)
    beside.begin(lambda: multiply(gradient.T, operand, conv.gradient))
    out = gradient @ conv.weight
    return out, relu_backward.stopped(out, end)
