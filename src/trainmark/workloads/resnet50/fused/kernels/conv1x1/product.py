"""1×1 convolutions: normalising on the way in, statistics on the way out."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels import channels, norms
from trainmark.workloads.resnet50.fused.kernels.persistent import walk
from trainmark.workloads.resnet50.fused.kernels.reading import normed, striped, tile_of
from trainmark.workloads.resnet50.fused.terms import Joined, Normed


@triton.jit
def _product(
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
                a = tl.maximum(normed(a, tl.load(factor + at + k), tl.load(offset + at + k)), 0.0)
            if inner != BK:
                w = tl.load(weight + n[None, :] * inner + (at + k)[:, None])
            out = tl.dot(a.to(w.dtype), w, out, input_precision="ieee" if exact else "tf32")
        place, there = tile_of(tile, n, rows, outputs, BM)
        rounded = out.to(y.dtype.element_ty)
        tl.store(y + place, rounded, mask=there)
        away = tl.where(there, rounded.to(tl.float32) - near[None, :], 0.0)
        total += striped(away, warps)
        square += striped(away * away, warps)
    tl.store(totals + first * outputs + n, tl.sum(total, axis=0))
    tl.store(squares + first * outputs + n, tl.sum(square, axis=0))


# Rows, outputs and inner columns of a tile, warps, stages.
TILES = [(64, 64, 64, 4, 3), (64, 128, 64, 4, 3), (128, 128, 64, 8, 3), (64, 64, 128, 4, 2)]
FUSED, APART = "fused", "apart"


def product(x, conv):
    """`value(x) · weightᵀ`, ready to be normed."""
    weight, norm = conv.weight, conv.norm
    x = x.value if isinstance(x, Joined) else x
    rectify = isinstance(x, Normed)
    matrix = x.raw if rectify else x

    def launch(way, norm):
        if way == APART:
            return norms.statistics(channels.computed(x) @ weight.T, norm)
        y, partial = _fused(matrix, (x.factor, x.offset) if rectify else (x, x), conv, rectify)
        if y.dtype == torch.float32:
            return norms.statistics(y, norm)  # a running mean may lie far away, and float32 would show it
        return norms.finish_statistics(y, partial, norm, pivot=norm.mean)

    key = matrix.shape[0], *weight.shape, rectify, matrix.dtype
    ways = [FUSED, APART] if tuning.dividing(TILES, *weight.shape) else [APART]
    way = tuning.tuner.choose("product_way", key, ways, lambda way: launch(way, norm.copy()), matrix.device)
    return launch(way, norm)


def _fused(matrix, numbers, conv, rectify):
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

        return walk(_product, arguments, warps, -(-rows // tall), outputs // across, matrix.device)

    key = rows, inner, outputs, rectify, matrix.dtype
    tried = tuning.dividing(TILES, outputs, inner)
    return y, launch(tuning.tuner.choose("product", key, tried, launch, matrix.device))


def multiply(a, b, out):
    """A library's product of halves, stored as it was added up, in float32."""
    if a.is_cuda and a.dtype != out.dtype:
        torch.ops.aten.mm.dtype_out(a, b, out.dtype, out=out)
    else:
        out.copy_(a.to(out.dtype) @ b.to(out.dtype))
