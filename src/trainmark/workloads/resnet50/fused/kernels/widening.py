"""1×1 convolutions with more outputs than inputs: libraries' products of what was stored, and small matrices.

Neither their statistics nor their gradients read what they gave. With weights W, operand X (centred: C), its
covariance S = CᵀC, and the gradient U behind the norm (centred: V):

    Σ (y − mean)²     = diag W·S·Wᵀ                     the variance of the outputs
    Σ V·(y − mean)    = diag VᵀX·Wᵀ                     what the norm's gradients need
    of the weights    = by · VᵀX + own · W·S            where by and own are those of a slope
    of the operand    = V·(by · W) + C·(Wᵀ · own · W)

Half precision holds both matrices of the last line by the largest of `by` and of `own`, a unit each.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import channels, stopping
from trainmark.workloads.resnet50.fused.kernels.ending import Ending
from trainmark.workloads.resnet50.fused.kernels.product import multiply
from trainmark.workloads.resnet50.fused.terms import Widened

SIDE = 64  # of a tile of a small matrix
MANY_INPUTS = 512
FEW = 16  # outputs that one program settles


@triton.jit
def _spread(
    weight, gram, total, spread, means, squares, rows,
    outputs: tl.constexpr, inputs: tl.constexpr, exact: tl.constexpr, SIDE: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    n = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    i = tl.arange(0, SIDE)
    here = tl.load(total + n)
    acc = tl.zeros([SIDE, SIDE], tl.float32)
    for at in range(0, inputs, SIDE):
        w = tl.load(weight + k[:, None] * inputs + (at + i)[None, :]).to(tl.float32)
        g = tl.load(gram + (at + i)[:, None] * inputs + n[None, :])
        g -= tl.load(total + at + i)[:, None] * (here / rows)[None, :]
        acc = tl.dot(w, g, acc, input_precision="ieee" if exact else "tf32x3")
    place = k[:, None] * inputs + n[None, :]
    tl.store(spread + place, acc)
    w = tl.load(weight + place).to(tl.float32)
    tl.store(means + tl.program_id(1) * outputs + k, tl.sum(w * here[None, :], axis=1))
    tl.store(squares + tl.program_id(1) * outputs + k, tl.sum(w * acc, axis=1))


def widen(x, conv, shape=None):
    """`value(x) · weightᵀ`, ready to be normed; of every second row and column where a shape is given."""
    weight = conv.weight
    outputs, inputs = weight.shape
    operand, total = channels.summed(x, shape)
    raw = operand @ weight.T
    gram = torch.empty(inputs, inputs, device=weight.device, dtype=torch.float32)
    multiply(operand.T, operand, gram)
    spread = torch.empty(outputs, inputs, device=weight.device, dtype=torch.float32)
    partial = torch.empty(2, inputs // SIDE, outputs, device=weight.device, dtype=torch.float32)
    _spread[(outputs // SIDE, inputs // SIDE)](
        weight, gram, total, spread, *partial, operand.shape[0],
        outputs, inputs, weight.dtype == torch.float32, SIDE,
    )  # fmt: skip
    normed = channels.finish_statistics(raw, partial, conv.norm, centred=True)
    return Widened(**vars(normed), operand=operand, total=total, spread=spread)


@triton.jit
def _settle(
    sums, product, weight, spread, total, scale, deviations, mean, scale_gradient, bias_gradient, gradient,
    scaled, own, shift, units, rows, count,
    outputs: tl.constexpr, inputs: tl.constexpr, FEW: tl.constexpr, SIDE: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    every = tl.arange(0, outputs)
    unit = tl.max(tl.abs(tl.load(scale + every) * tl.load(deviations + every)), axis=0)
    unit = tl.maximum(unit, 1e-30)
    k = tl.program_id(0) * FEW + tl.arange(0, FEW)
    n = tl.arange(0, SIDE)
    p = tl.arange(0, MANY)
    t = tl.zeros([MANY, FEW], tl.float32)
    for start in range(0, count, MANY):
        place = (start + p)[:, None] * outputs + k[None, :]
        t += tl.load(sums + place, mask=(start + p < count)[:, None], other=0.0)
    t = tl.sum(t, axis=0)
    a = tl.zeros([FEW, SIDE], tl.float32)
    for at in range(0, inputs, SIDE):
        place = k[:, None] * inputs + (at + n)[None, :]
        v = tl.load(product + place) - (t / rows)[:, None] * tl.load(total + at + n)[None, :]
        a += v * tl.load(weight + place).to(tl.float32)
    a = tl.sum(a, axis=1)
    deviation = tl.load(deviations + k)
    by = tl.load(scale + k) * deviation
    of_own = -by * deviation * deviation * a / rows
    tl.store(bias_gradient + k, t)
    tl.store(scale_gradient + k, a * deviation)
    tl.store(own + k, of_own)
    tl.store(shift + k, by * t / rows + of_own * tl.load(mean + k))
    for at in range(0, inputs, SIDE):
        place = k[:, None] * inputs + (at + n)[None, :]
        v = tl.load(product + place) - (t / rows)[:, None] * tl.load(total + at + n)[None, :]
        w = tl.load(weight + place)
        tl.store(gradient + place, by[:, None] * v + of_own[:, None] * tl.load(spread + place))
        tl.store(scaled + place, ((by / unit)[:, None] * w.to(tl.float32)).to(scaled.dtype.element_ty))
    if tl.program_id(0) == 0:
        tl.store(units, unit)


@triton.jit
def _mix(
    weight, own, shift, mixing, constant, units,
    outputs: tl.constexpr, inputs: tl.constexpr, exact: tl.constexpr, SIDE: tl.constexpr,
):  # fmt: skip
    every = tl.arange(0, outputs)
    unit = tl.maximum(tl.max(tl.abs(tl.load(own + every)), axis=0), 1e-30)
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    k = tl.arange(0, SIDE)
    acc = tl.zeros([SIDE, SIDE], tl.float32)
    moved = tl.zeros([SIDE, SIDE], tl.float32)
    for at in range(0, outputs, SIDE):
        c = at + k
        one = tl.load(weight + c[:, None] * inputs + i[None, :]).to(tl.float32)
        one *= (tl.load(own + c) / unit)[:, None]
        two = tl.load(weight + c[:, None] * inputs + j[None, :]).to(tl.float32)
        acc = tl.dot(tl.trans(one), two, acc, input_precision="ieee" if exact else "tf32")
        moved += tl.load(shift + c)[:, None] * two
    tl.store(mixing + i[:, None] * inputs + j[None, :], acc.to(mixing.dtype.element_ty))
    if tl.program_id(0) == 0:
        tl.store(constant + j, tl.sum(moved, axis=0))
        if tl.program_id(1) == 0:
            tl.store(units + 1, unit)


def widen_back(upper, totals, y, conv, onto=None):
    """The operand's gradient, stopped by its ReLU, with the sums of its norm; that of the weights is set.

    `totals` are the sums of `upper`, one row from each of the programs that gave it.
    """
    weight, norm, exact = conv.weight, conv.norm, conv.weight.dtype == torch.float32
    rows, (outputs, inputs) = upper.shape[0], weight.shape

    def vector(length):
        return torch.empty(length, device=weight.device, dtype=torch.float32)

    product = torch.empty_like(y.spread)
    multiply(upper.T, y.operand, product)
    own, shift, units, constant = vector(outputs), vector(outputs), vector(2), vector(inputs)
    scaled, mixing = torch.empty_like(weight), weight.new_empty(inputs, inputs)
    _settle[(outputs // FEW,)](
        totals, product, weight, y.spread, y.total, norm.scale, y.deviation, y.mean,
        norm.scale_gradient, norm.bias_gradient, conv.gradient, scaled, own, shift, units,
        rows, totals.shape[0], outputs, inputs, FEW, SIDE, channels.MANY,
    )  # fmt: skip
    side = SIDE if inputs > MANY_INPUTS else SIDE // 2  # smaller tiles where else few programs would run
    _mix[(inputs // side, inputs // side)](
        weight, own, shift, mixing, constant, units, outputs, inputs, exact, side
    )
    end = Ending(onto, mixed=(y.operand @ mixing, units, constant))
    out = upper @ scaled
    return out, end.sums(stopping.stopped(out, end))
