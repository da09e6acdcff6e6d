"""1×1 convolutions forward: batch norm and ReLU on the way in, statistics or a block's end on the way out.

A block's end norms what its last convolution gave, adds the shortcut and rectifies before anything is
stored: its norm is known before it is computed, since its operand told (see `expansion.py`).
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused import batch_norm
from trainmark.workloads.resnet50.fused.network import PendingNorm, ResidualSum
from trainmark.workloads.resnet50.fused.tiles import launch_persistent, scale_shift, sum_thread_rows, tile_of


@triton.jit
def _conv1x1(
    x, weight, y, factor, offset, pivot, totals, squares, rows,
    inner: tl.constexpr, outputs: tl.constexpr, rectify: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, warps: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = outputs // BN
    column = tl.program_id(0) % across
    first = tl.program_id(0) // across
    step = tl.num_programs(0) // across
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    near = tl.load(pivot + n)
    total = tl.zeros([warps * 8, BN], tl.float32)
    square = tl.zeros([warps * 8, BN], tl.float32)
    w = tl.load(weight + n[None, :] * inner + k[:, None])
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if inner == BK else 1):
        out = tl.zeros([BM, BN], tl.float32)
        for at in tl.range(0, inner, BK, num_stages=1 if inner == BK else stages):
            place, there = tile_of(tile, at + k, rows, inner, BM)
            a = tl.load(x + place, mask=there, other=0.0)
            if rectify:
                a = tl.maximum(scale_shift(a, tl.load(factor + at + k), tl.load(offset + at + k)), 0.0)
            if inner != BK:
                w = tl.load(weight + n[None, :] * inner + (at + k)[:, None])
            out = tl.dot(a.to(w.dtype), w, out, input_precision="ieee" if exact else "tf32")
        place, there = tile_of(tile, n, rows, outputs, BM)
        rounded = out.to(y.dtype.element_ty)
        tl.store(y + place, rounded, mask=there)
        away = tl.where(there, rounded.to(tl.float32) - near[None, :], 0.0)
        total += sum_thread_rows(away, warps)
        square += sum_thread_rows(away * away, warps)
    tl.store(totals + first * outputs + n, tl.sum(total, axis=0))
    tl.store(squares + first * outputs + n, tl.sum(square, axis=0))


# Rows, outputs and inner columns of a tile, warps, stages.
PRODUCT_TILES = [(64, 64, 64, 4, 3), (64, 128, 64, 4, 3), (128, 128, 64, 8, 3), (64, 64, 128, 4, 2)]
FUSED, APART = "fused", "apart"


def conv1x1(x, conv):
    """`value(x) · weightᵀ`, ready to be normed."""
    weight, norm = conv.weight, conv.norm
    x = x.value if isinstance(x, ResidualSum) else x
    rectify = isinstance(x, PendingNorm)
    matrix = x.raw if rectify else x

    def launch(way, norm):
        if way == APART:
            return batch_norm.statistics(batch_norm.materialized(x) @ weight.T, norm)
        y, partial = _fused_conv1x1(matrix, (x.factor, x.offset) if rectify else (x, x), conv, rectify)
        if y.dtype == torch.float32:
            return batch_norm.statistics(
                y, norm
            )  # a running mean may lie far away, and float32 would show it
        return batch_norm.finish_statistics(y, partial, norm, pivot=norm.mean)

    key = matrix.shape[0], *weight.shape, rectify, matrix.dtype
    ways = [FUSED, APART] if tuning.dividing(PRODUCT_TILES, *weight.shape) else [APART]
    way = tuning.tuner.choose("conv1x1_way", key, ways, lambda way: launch(way, norm.copy()), matrix.device)
    return launch(way, norm)


def _fused_conv1x1(matrix, numbers, conv, rectify):
    """The product, and the sums for its statistics: one row of them from each program."""
    rows, (outputs, inner) = matrix.shape[0], conv.weight.shape
    y = matrix.new_empty(rows, outputs)

    def launch(tile):
        tall, across, _, warps, _ = tile

        def arguments(strips):
            partial = torch.empty(2, strips, outputs, device=matrix.device, dtype=torch.float32)
            return partial, (
                matrix, conv.weight, y, *numbers, conv.norm.mean, *partial, rows,
                inner, outputs, rectify, matrix.dtype == torch.float32, *tile,
            )  # fmt: skip

        return launch_persistent(
            _conv1x1, arguments, warps, -(-rows // tall), outputs // across, matrix.device
        )

    key = rows, inner, outputs, rectify, matrix.dtype
    tried = tuning.dividing(PRODUCT_TILES, outputs, inner)
    return y, launch(tuning.tuner.choose("conv1x1", key, tried, launch, matrix.device))


def matmul_into(a, b, out):
    """A library's product of halves, stored as it was added up, in float32."""
    if a.is_cuda and a.dtype != out.dtype:
        torch.ops.aten.mm.dtype_out(a, b, out.dtype, out=out)
    else:
        out.copy_(a.to(out.dtype) @ b.to(out.dtype))


@triton.jit
def _residual_add(
    x, weight, factor, offset, shortcut, shortcut_factor, shortcut_offset, value, rows,
    inner: tl.constexpr, outputs: tl.constexpr, norms: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = outputs // BN
    n = tl.program_id(0) % across * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    first, step = tl.program_id(0) // across, tl.num_programs(0) // across
    w = tl.load(weight + n[None, :] * inner + k[:, None])
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if inner == BK else 1):
        out = tl.zeros([BM, BN], tl.float32)
        target, lies = tile_of(tile, n, rows, outputs, BM)
        if inner != BK:  # on its way while the product is computed; in one piece, tiles overlap as wholes
            other = tl.load(shortcut + target, mask=lies, other=0.0)
        for at in tl.range(0, inner, BK, num_stages=1 if inner == BK else stages):
            place, there = tile_of(tile, at + k, rows, inner, BM)
            a = tl.load(x + place, mask=there, other=0.0)
            if inner != BK:
                w = tl.load(weight + n[None, :] * inner + (at + k)[:, None])
            out = tl.dot(a, w, out, input_precision="ieee" if exact else "tf32")
        if inner == BK:
            other = tl.load(shortcut + target, mask=lies, other=0.0)
        added = other.to(tl.float32)
        if norms:
            added = scale_shift(other, tl.load(shortcut_factor + n), tl.load(shortcut_offset + n))
        out = tl.maximum(scale_shift(out, tl.load(factor + n), tl.load(offset + n)) + added, 0.0)
        tl.store(value + target, out.to(value.dtype.element_ty), mask=lies)


# Rows, outputs and inner columns of a tile, warps, stages.
RESIDUAL_TILES = [
    (64, 128, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (64, 128, 128, 4, 2),
    (128, 128, 64, 8, 4),
    (64, 256, 64, 8, 3),
    (128, 256, 64, 8, 3),
]
MOST_RESIDUAL_WEIGHTS = 256 * 1024  # what it saves grows with the outputs
FUSED, APART = "fused", "apart"


def residual_add(x):
    """A block's end with its value."""
    shortcut, weight = x.shortcut, x.norm.weight
    norms = isinstance(shortcut, PendingNorm)
    if norms:
        shortcut = shortcut.of(shortcut.operand @ shortcut.weight.T)
    operand = x.norm.operand

    def launch(way):
        if way == FUSED:
            return _fused_residual(x.norm, shortcut, norms)
        return batch_norm.residual_relu(x.norm.of(operand @ weight.T), shortcut)

    key = operand.shape[0], *weight.shape, norms, weight.dtype
    ways = (
        [FUSED, APART] if tuning.dividing(RESIDUAL_TILES, *weight.shape, MOST_RESIDUAL_WEIGHTS) else [APART]
    )
    x.value = launch(tuning.tuner.choose("residual_add_way", key, ways, launch, weight.device))
    return x


def _fused_residual(norm, shortcut, norms):
    rows, (outputs, inner) = norm.operand.shape[0], norm.weight.shape
    value = norm.operand.new_empty(rows, outputs)
    others = (shortcut.raw, shortcut.factor, shortcut.offset) if norms else (shortcut, shortcut, shortcut)

    def launch(tile):
        tall, across, deep, warps, stages = tile
        given = (
            norm.operand, norm.weight, norm.factor, norm.offset, *others, value, rows,
            inner, outputs, norms, value.dtype == torch.float32, tall, across, deep, stages,
        )  # fmt: skip
        launch_persistent(
            _residual_add,
            lambda strips: (None, given),
            warps,
            -(-rows // tall),
            outputs // across,
            value.device,
        )

    key = rows, inner, outputs, norms, value.dtype
    tried = tuning.dividing(RESIDUAL_TILES, outputs, inner, MOST_RESIDUAL_WEIGHTS)
    launch(tuning.tuner.choose("residual_add", key, tried, launch, value.device))
    return value
