"""Gradients of 1×1 convolutions' weights: both operands are computed on the way in, neither is stored."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import tuning
from trainmark.workloads.resnet50.fused.kernels.reading import normed, slope
from trainmark.workloads.resnet50.fused.kernels.walking import walk
from trainmark.workloads.resnet50.fused.terms import Joined, Normed


@triton.jit
def _weight_gradient(
    upper, raw, by, own, rest, factor, offset, x, x_factor, x_offset, partial, rows,
    outputs: tl.constexpr, inputs: tl.constexpr, rectify: tl.constexpr, rectified: tl.constexpr,
    exact: tl.constexpr, BO: tl.constexpr, BI: tl.constexpr, BM: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    tiles: tl.constexpr = (outputs // BO) * (inputs // BI)
    tile = tl.program_id(0) % tiles
    first = tl.program_id(0) // tiles
    step = tl.num_programs(0) // tiles
    o = tile // (inputs // BI) * BO + tl.arange(0, BO)
    i = tile % (inputs // BI) * BI + tl.arange(0, BI)
    m = tl.arange(0, BM)
    numbers = tl.load(by + o), tl.load(own + o), tl.load(rest + o)
    f, t = tl.load(factor + o), tl.load(offset + o)
    acc = tl.zeros([BI, BO], tl.float32)
    for piece in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages):
        start = piece * tl.full([], BM, tl.int64)
        there = (start + m < rows)[:, None]
        place = start * outputs + m[:, None] * outputs + o[None, :]
        g = tl.load(upper + place, mask=there, other=0.0)
        r = tl.load(raw + place, mask=there, other=0.0)
        d = slope(g, r, numbers[0], numbers[1], numbers[2], f, t, rectify)
        d = tl.where(there, d, 0.0).to(upper.dtype.element_ty)
        v = tl.load(x + start * inputs + m[:, None] * inputs + i[None, :], mask=there, other=0.0)
        if rectified:
            v = tl.maximum(normed(v, tl.load(x_factor + i), tl.load(x_offset + i)), 0.0).to(d.dtype)
        acc = tl.dot(tl.trans(v), d, acc, input_precision="ieee" if exact else "tf32")
    tl.store(partial + first * outputs * inputs + o[None, :] * inputs + i[:, None], acc)


# Outputs, inputs and rows of a tile, warps, stages.
TILES = [
    (64, 64, 64, 4, 4),
    (64, 128, 64, 4, 3),
    (128, 64, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (64, 256, 64, 8, 3),
    (256, 64, 64, 8, 3),
]


def candidates(outputs, inputs):
    """The tiles that divide this gradient."""
    return [tile for tile in TILES if outputs % tile[0] == 0 and inputs % tile[1] == 0]


def weight_gradient(s, x, out):
    """Written to `out`, a float32 matrix of (outputs, inputs)."""
    if isinstance(x, Joined):
        x = x.value
    rectified = isinstance(x, Normed)
    matrix, numbers = (x.raw, (x.factor, x.offset)) if rectified else (x, (s.by, s.by))
    rows, (outputs, inputs) = matrix.shape[0], out.shape

    def launch(tile):
        tall, across, deep, warps, stages = tile

        def arguments(strips):
            partial = torch.empty(strips, outputs, inputs, device=out.device, dtype=torch.float32)
            return partial, (
                *s.matrices(), matrix, *numbers, partial, rows, outputs, inputs, s.rectify, rectified,
                s.upper.dtype == torch.float32, tall, across, deep, stages,
            )  # fmt: skip

        pieces = (outputs // tall) * (inputs // across)
        torch.sum(walk(_weight_gradient, arguments, warps, -(-rows // deep), pieces, out.device), 0, out=out)

    key = rows, outputs, inputs, s.rectify, rectified, s.upper.dtype
    launch(tuning.tuner.choose("weight_gradient", key, candidates(outputs, inputs), launch, out.device))
