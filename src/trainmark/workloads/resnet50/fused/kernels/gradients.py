"""Both gradients of a 1×1 convolution, by the way that is fastest for its shape on this device."""

from trainmark.workloads.resnet50.fused.kernels import channels, stopping, together, tuning
from trainmark.workloads.resnet50.fused.kernels.ending import Ending
from trainmark.workloads.resnet50.fused.kernels.product import multiply

TOGETHER, APART = "together", "apart"


def product_gradients(s, x, conv, onto=None, addend=None, spread=None):
    """That of the weights goes to its place; returned is the operand's, with the sums that follow."""
    end = Ending(onto, addend, spread)
    gradient = channels.apply(s)

    def launch(way):
        if way == TOGETHER:
            return together.together(gradient, conv, end)
        return _apart(gradient, x, conv, end)

    weight = conv.weight
    key = s.upper.shape[0], *weight.shape, type(x).__name__, end.stop, end.adds, weight.dtype
    # In one pass, the operand is also what stops its gradient.
    ways = [TOGETHER, APART] if onto is x and together.candidates(weight) else [APART]
    out, partial = launch(tuning.tuner.choose("product_gradients", key, ways, launch, weight.device))
    return out, end.sums(partial)


def _apart(gradient, x, conv, end):
    """The products are the library's."""
    multiply(gradient.T, channels.computed(x), conv.gradient)
    out = gradient @ conv.weight
    return out, stopping.stopped(out, end)
