"""1×1 convolutions with more outputs than inputs: all that is known of them before they are computed.

Neither their statistics nor their gradients read what they gave. With weights W, operand X (centred: C), its
covariance S = CᵀC, and the gradient U behind the norm (centred: V):

    Σ (y − mean)²     = diag W·S·Wᵀ                     the variance of the outputs
    Σ V·(y − mean)    = diag VᵀX·Wᵀ                     what the norm's gradients need
    of the weights    = by · VᵀX + own · W·S            where by and own are those of a batch-norm gradient
    of the operand    = V·(by · W) + C·(Wᵀ · own · W)
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels import channels, norms
from trainmark.workloads.resnet50.fused.kernels.conv1x1.product import multiply
from trainmark.workloads.resnet50.fused.terms import Widened

DEEP = 64  # columns that a product of small matrices takes at a time


@triton.jit
def _spread(
    weight, gram, total, spread, means, squares, rows,
    outputs: tl.constexpr, inputs: tl.constexpr, exact: tl.constexpr, SIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    n = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    i = tl.arange(0, DEEP)
    here = tl.load(total + n)
    # No covariance is larger than the largest square: by it, halves hold them all.
    unit = tl.max(tl.load(gram + tl.arange(0, inputs) * (inputs + 1)), axis=0)
    unit = tl.maximum(unit, 1e-30)
    acc = tl.zeros([SIDE, SIDE], tl.float32)
    for at in range(0, inputs, DEEP):
        w = tl.load(weight + k[:, None] * inputs + (at + i)[None, :])
        g = tl.load(gram + (at + i)[:, None] * inputs + n[None, :])
        g = (g - tl.load(total + at + i)[:, None] * (here / rows)[None, :]) / unit
        if exact:
            acc = tl.dot(w, g, acc, input_precision="ieee")
        else:  # in two halves, of which the second is what the first has rounded away
            half = g.to(w.dtype)
            acc = tl.dot(w, half, acc)
            acc = tl.dot(w, (g - half.to(tl.float32)).to(w.dtype), acc)
    acc *= unit
    place = k[:, None] * inputs + n[None, :]
    tl.store(spread + place, acc)
    w = tl.load(weight + place).to(tl.float32)
    tl.store(means + tl.program_id(1) * outputs + k, tl.sum(w * here[None, :], axis=1))
    tl.store(squares + tl.program_id(1) * outputs + k, tl.sum(w * acc, axis=1))


def widen(x, conv, shape=None):
    """All that `value(x) · weightᵀ` needs to be normed and joined.

    Where a shape is given, only every second row and column of the pictures is read.
    """
    weight = conv.weight
    outputs, inputs = weight.shape
    operand, total = channels.summed(x, shape)
    gram = torch.empty(inputs, inputs, device=weight.device, dtype=torch.float32)
    multiply(operand.T, operand, gram)
    spread = torch.empty(outputs, inputs, device=weight.device, dtype=torch.float32)
    side = tuning.side(inputs)
    partial = torch.empty(2, inputs // side, outputs, device=weight.device, dtype=torch.float32)
    _spread[(outputs // side, inputs // side)](
        weight, gram, total, spread, *partial, operand.shape[0],
        outputs, inputs, weight.dtype == torch.float32, side, DEEP,
    )  # fmt: skip
    numbers = norms.numbers_of(conv.norm, partial, operand.shape[0])
    return Widened(None, *numbers, operand=operand, weight=weight, total=total, spread=spread)
