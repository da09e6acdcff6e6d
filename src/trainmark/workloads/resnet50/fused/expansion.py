"""1×1 convolutions with more outputs than inputs, whose norm is known before they are computed.

Neither their statistics nor their gradients read what they gave. With weights W, operand X (centred: C),
its covariance S = CᵀC, and the gradient U behind the norm (centred: V):

    Σ (y − mean)²     = diag W·S·Wᵀ                     the variance of the outputs
    Σ V·(y − mean)    = diag VᵀX·Wᵀ                     what the norm's gradients need
    of the weights    = by · VᵀX + own · W·S            where by and own are those of a batch-norm gradient
    of the operand    = V·(by · W) + C·(Wᵀ · own · W)

Half precision holds the two matrices of the operand's gradient by the largest of `by` and of `own`, a
unit each.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused import batch_norm, dgrad_wgrad
from trainmark.workloads.resnet50.fused.batch_norm import batch_norm_grad_coefficients, sum_partials
from trainmark.workloads.resnet50.fused.conv1x1 import matmul_into
from trainmark.workloads.resnet50.fused.dgrad_wgrad import Epilogue
from trainmark.workloads.resnet50.fused.network import ExpandedNorm
from trainmark.workloads.resnet50.fused.tiles import launch_persistent, scale_shift, tile_of

COVARIANCE_DEPTH = 64  # columns that a product of small matrices takes at a time


@triton.jit
def _weights_covariance(
    weight, gram, total, covariance, means, squares, rows,
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
    tl.store(covariance + place, acc)
    w = tl.load(weight + place).to(tl.float32)
    tl.store(means + tl.program_id(1) * outputs + k, tl.sum(w * here[None, :], axis=1))
    tl.store(squares + tl.program_id(1) * outputs + k, tl.sum(w * acc, axis=1))


def expand(x, conv, shape=None):
    """All that `value(x) · weightᵀ` needs to be normed and joined.

    Where a shape is given, only every second row and column of the pictures is read.
    """
    weight = conv.weight
    outputs, inputs = weight.shape
    operand, total = batch_norm.materialized_with_sum(x, shape)
    gram = torch.empty(inputs, inputs, device=weight.device, dtype=torch.float32)
    matmul_into(operand.T, operand, gram)
    covariance = torch.empty(outputs, inputs, device=weight.device, dtype=torch.float32)
    side = tuning.side(inputs)
    partial = torch.empty(2, inputs // side, outputs, device=weight.device, dtype=torch.float32)
    _weights_covariance[(outputs // side, inputs // side)](
        weight, gram, total, covariance, *partial, operand.shape[0],
        outputs, inputs, weight.dtype == torch.float32, side, COVARIANCE_DEPTH,
    )  # fmt: skip
    numbers = batch_norm.finished_norm(conv.norm, partial, operand.shape[0])
    return ExpandedNorm(None, *numbers, operand=operand, weight=weight, total=total, covariance=covariance)


MIXING_DEPTH = 128  # outputs that a product of small matrices takes at a time
OUTPUTS_PER_PROGRAM = 16  # outputs that one program settles


@triton.jit
def _weight_gradients(
    sums, product, weight, covariance, total, scale, deviations, mean, scale_gradient, bias_gradient,
    gradient, scaled, own, shift, units, rows, count,
    outputs: tl.constexpr, inputs: tl.constexpr, FEW: tl.constexpr, SIDE: tl.constexpr, MANY: tl.constexpr,
):  # fmt: skip
    every = tl.arange(0, outputs)
    unit = tl.max(tl.abs(tl.load(scale + every) * tl.load(deviations + every)), axis=0)
    unit = tl.maximum(unit, 1e-30)
    k = tl.program_id(0) * FEW + tl.arange(0, FEW)
    n = tl.arange(0, SIDE)
    t = sum_partials(sums, k, count, outputs, FEW, MANY)
    a = tl.zeros([FEW, SIDE], tl.float32)
    for at in range(0, inputs, SIDE):
        place = k[:, None] * inputs + (at + n)[None, :]
        v = tl.load(product + place) - (t / rows)[:, None] * tl.load(total + at + n)[None, :]
        a += v * tl.load(weight + place).to(tl.float32)
    a = tl.sum(a, axis=1)
    by, of_own = batch_norm_grad_coefficients(k, t, a, scale, deviations, scale_gradient, bias_gradient, rows)
    tl.store(own + k, of_own)
    tl.store(shift + k, by * t / rows + of_own * tl.load(mean + k))
    for at in range(0, inputs, SIDE):
        place = k[:, None] * inputs + (at + n)[None, :]
        v = tl.load(product + place) - (t / rows)[:, None] * tl.load(total + at + n)[None, :]
        w = tl.load(weight + place)
        tl.store(gradient + place, by[:, None] * v + of_own[:, None] * tl.load(covariance + place))
        tl.store(scaled + place, ((by / unit)[:, None] * w.to(tl.float32)).to(scaled.dtype.element_ty))
    if tl.program_id(0) == 0:
        tl.store(units, unit)


@triton.jit
def _mixing_matrix(
    weight, own, shift, mixing, constant, units,
    outputs: tl.constexpr, inputs: tl.constexpr, exact: tl.constexpr, SIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    every = tl.arange(0, outputs)
    unit = tl.maximum(tl.max(tl.abs(tl.load(own + every)), axis=0), 1e-30)
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    k = tl.arange(0, DEEP)
    acc = tl.zeros([SIDE, SIDE], tl.float32)
    moved = tl.zeros([DEEP, SIDE], tl.float32)
    for at in range(0, outputs, DEEP):
        c = at + k
        one = tl.load(weight + c[:, None] * inputs + i[None, :]).to(tl.float32)
        one *= (tl.load(own + c) / unit)[:, None]
        two = tl.load(weight + c[:, None] * inputs + j[None, :])
        acc = tl.dot(tl.trans(one.to(two.dtype)), two, acc, input_precision="ieee" if exact else "tf32")
        if tl.program_id(0) == 0:
            moved += tl.load(shift + c)[:, None] * two.to(tl.float32)
    tl.store(mixing + i[:, None] * inputs + j[None, :], acc.to(mixing.dtype.element_ty))
    if tl.program_id(0) == 0:
        tl.store(constant + j, tl.sum(moved, axis=0))
        if tl.program_id(1) == 0:
            tl.store(units + 1, unit)


@triton.jit
def _expand_dgrad(
    upper, scaled, operand, mixing, out, units, constant, onto, factor, offset, mean, totals, againsts, rows,
    outputs: tl.constexpr, inputs: tl.constexpr, stop: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    precision: tl.constexpr = "ieee" if exact else "tf32"
    across: tl.constexpr = inputs // BN
    n = tl.program_id(0) % across * BN + tl.arange(0, BN)
    i = tl.arange(0, inputs)
    k = tl.arange(0, BK)
    first, step = tl.program_id(0) // across, tl.num_programs(0) // across
    direct, mixed = tl.load(units), tl.load(units + 1)
    w = tl.load(scaled + k[:, None] * inputs + n[None, :])
    mix = tl.load(mixing + i[:, None] * inputs + n[None, :])
    total = tl.zeros([BM, BN], tl.float32)
    against = tl.zeros([BM, BN], tl.float32)
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if outputs == BK else 1):
        acc = tl.zeros([BM, BN], tl.float32)
        target, lies = tile_of(tile, n, rows, inputs, BM)
        if stop:  # on its way while products are computed
            reached = tl.load(onto + target, mask=lies, other=0.0)
        for at in tl.range(0, outputs, BK, num_stages=1 if outputs == BK else stages):
            place, there = tile_of(tile, at + k, rows, outputs, BM)
            u = tl.load(upper + place, mask=there, other=0.0)
            if outputs != BK:
                w = tl.load(scaled + (at + k)[:, None] * inputs + n[None, :])
            acc = tl.dot(u, w, acc, input_precision=precision)
        place, there = tile_of(tile, i, rows, inputs, BM)
        x = tl.load(operand + place, mask=there, other=0.0)
        acc = acc * direct + tl.dot(x, mix, input_precision=precision) * mixed
        acc -= tl.load(constant + n)[None, :]
        if stop:
            r = reached.to(tl.float32)
            opens = scale_shift(r, tl.load(factor + n), tl.load(offset + n)) > 0
            acc = tl.where(opens & lies, acc, 0.0)
        rounded = acc.to(out.dtype.element_ty)
        tl.store(out + target, rounded, mask=lies)
        if stop:
            g = rounded.to(tl.float32)
            total += g
            against += g * (r - tl.load(mean + n)[None, :])
    if stop:
        tl.store(totals + first * inputs + n, tl.sum(total, axis=0))
        tl.store(againsts + first * inputs + n, tl.sum(against, axis=0))


# Rows, inputs and outputs of a tile, warps, stages.
DGRAD_TILES = [
    (64, 64, 64, 4, 3),
    (64, 64, 128, 4, 3),
    (64, 64, 256, 4, 2),
    (64, 64, 256, 8, 2),
    (64, 128, 64, 8, 3),
]
FUSED, APART = "fused", "apart"


def expand_backward(upper, totals, y, conv, onto=None):
    """The operand's gradient, stopped by its ReLU, with the sums of its norm; that of the weights is set.

    `totals` are the sums of `upper`, one row from each of the programs that gave it.
    """
    weight = conv.weight
    product = torch.empty_like(y.covariance)
    matmul_into(upper.T, y.operand, product)
    matrices = _dgrad_matrices(totals, product, y, conv, upper.shape[0])
    end = Epilogue(onto)

    def launch(way):
        return (_fused_dgrad if way == FUSED else _library_dgrad)(upper, y.operand, matrices, end)

    key = upper.shape[0], *weight.shape, end.stop, weight.dtype
    ways = [FUSED, APART] if tuning.dividing(DGRAD_TILES, weight.shape[1], weight.shape[0]) else [APART]
    out, partial = launch(tuning.tuner.choose("expand_backward_way", key, ways, launch, weight.device))
    return out, end.sums(partial)


def _dgrad_matrices(totals, product, y, conv, rows):
    """By which the gradient and the operand are multiplied, their units, and what is subtracted."""
    weight, norm, exact = conv.weight, conv.norm, conv.weight.dtype == torch.float32
    outputs, inputs = weight.shape
    scaled, mixing = torch.empty_like(weight), weight.new_empty(inputs, inputs)
    own, shift, units, constant = (
        torch.empty(length, device=weight.device, dtype=torch.float32)
        for length in (outputs, outputs, 2, inputs)
    )
    _weight_gradients[(outputs // OUTPUTS_PER_PROGRAM,)](
        totals, product, weight, y.covariance, y.total, norm.scale, y.deviation, y.mean,
        norm.scale_gradient, norm.bias_gradient, conv.gradient, scaled, own, shift, units,
        rows, totals.shape[0], outputs, inputs, OUTPUTS_PER_PROGRAM, 64, batch_norm.PARTIALS_PER_BLOCK,
    )  # fmt: skip
    side = tuning.side(inputs)
    _mixing_matrix[(inputs // side, inputs // side)](
        weight, own, shift, mixing, constant, units, outputs, inputs, exact, side, MIXING_DEPTH
    )
    return scaled, mixing, units, constant


def _library_dgrad(upper, operand, matrices, end):
    """The products are the library's."""
    scaled, mixing, units, constant = matrices
    out = upper @ scaled
    return out, dgrad_wgrad.relu_backward(out, end, (operand @ mixing, units, constant))


def _fused_dgrad(upper, operand, matrices, end):
    scaled, mixing, units, constant = matrices
    rows, (outputs, inputs) = upper.shape[0], scaled.shape
    out = upper.new_empty(rows, inputs)

    def launch(tile):
        tall, across, deep, warps, stages = tile

        def arguments(strips):
            partial = torch.empty(2, strips, inputs, device=out.device, dtype=torch.float32)
            return partial, (
                upper, scaled, operand, mixing, out, units, constant, *end.matrices(out)[1:], *partial, rows,
                outputs, inputs, end.stop, out.dtype == torch.float32, tall, across, deep, stages,
            )  # fmt: skip

        return launch_persistent(
            _expand_dgrad, arguments, warps, -(-rows // tall), inputs // across, out.device
        )

    key = rows, outputs, inputs, end.stop, out.dtype
    tried = tuning.dividing(DGRAD_TILES, inputs, outputs)
    return out, launch(tuning.tuner.choose("expand_backward", key, tried, launch, out.device))
