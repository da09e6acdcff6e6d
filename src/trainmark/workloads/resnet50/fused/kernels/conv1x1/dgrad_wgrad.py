"""Both gradients of a 1×1 convolution in one pass: the operand is read once, and stops its own gradient.

A program keeps its part of the weights' gradient in registers; so the convolution has few outputs.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels.conv1x1.relu_backward import with_addend
from trainmark.workloads.resnet50.fused.kernels.persistent import walk
from trainmark.workloads.resnet50.fused.kernels.reading import normed, tile_of

WARPS_SHARE = 64 * 32  # of the sums: 64 in each thread
MOST_WEIGHTS = 256 * 512
MOST_BYTES = 512  # of a row of outputs, since shared memory holds tiles of them


@triton.jit
def _together(
    gradient, weight, out, weight_sums,
    addend, onto, onto_factor, onto_offset, onto_mean, totals, againsts, rows,
    picture_rows: tl.constexpr, picture_columns: tl.constexpr, outputs: tl.constexpr, inputs: tl.constexpr,
    stop: tl.constexpr, adds: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    precision: tl.constexpr = "ieee" if exact else "tf32"
    across: tl.constexpr = inputs // BN
    column = tl.program_id(0) % across
    first = tl.program_id(0) // across
    k = tl.arange(0, outputs)
    n = column * BN + tl.arange(0, BN)
    w = tl.load(weight + k[None, :] * inputs + n[:, None])
    weight_sum = tl.zeros([BN, outputs], tl.float32)
    total = tl.zeros([BM, BN], tl.float32)
    against = tl.zeros([BM, BN], tl.float32)
    for tile in tl.range(first, tl.cdiv(rows, BM), tl.num_programs(0) // across, num_stages=stages):
        place, there = tile_of(tile, k, rows, outputs, BM)
        d = tl.load(gradient + place, mask=there, other=0.0)
        place, there = tile_of(tile, n, rows, inputs, BM)
        read = tl.load(onto + place, mask=there, other=0.0)
        value = read
        if stop == 1:
            value = tl.maximum(normed(read, tl.load(onto_factor + n), tl.load(onto_offset + n)), 0.0)
        passes = value > 0
        # The other way round: a product's second operand is read from shared memory, where both find `d`.
        weight_sum = tl.dot(tl.trans(value.to(d.dtype)), d, weight_sum, input_precision=precision)
        back = tl.trans(tl.dot(w, tl.trans(d), input_precision=precision))
        back = with_addend(
            back, addend, tile, n, place, there, picture_rows, picture_columns, inputs, adds, BM
        )
        rounded = tl.where(passes & there, back, 0.0).to(out.dtype.element_ty)
        tl.store(out + place, rounded, mask=there)
        back = rounded.to(tl.float32)
        total += back
        if stop == 1:
            against += back * (read.to(tl.float32) - tl.load(onto_mean + n)[None, :])
    tl.store(weight_sums + first * outputs * inputs + k[None, :] * inputs + n[:, None], weight_sum)
    tl.store(totals + first * inputs + n, tl.sum(total, axis=0))
    if stop == 1:
        tl.store(againsts + first * inputs + n, tl.sum(against, axis=0))


# Rows and inputs of a tile, warps, stages.
TILES = [(64, 64, 4, 2), (64, 64, 4, 3), (64, 64, 8, 3), (64, 128, 8, 2)]


def candidates(weight):
    """The tiles that divide this gradient and whose part of the weights' fits in a program's registers."""
    outputs, inputs = weight.shape
    if weight.numel() > MOST_WEIGHTS or outputs * weight.element_size() > MOST_BYTES:
        return []
    return [tile for tile in TILES if inputs % tile[1] == 0 and outputs * tile[1] <= WARPS_SHARE * tile[2]]


def together(gradient, conv, end):
    """The operand's gradient and its sums, one row from each program; the weights' is set."""
    weight = conv.weight
    rows, (outputs, inputs) = gradient.shape[0], weight.shape
    out = torch.empty(rows, inputs, device=weight.device, dtype=weight.dtype)

    def launch(tile):
        tall, across, warps, stages = tile

        def arguments(strips):
            sums = torch.empty(2, strips, inputs, device=weight.device, dtype=torch.float32)
            weight_sums = torch.empty(strips, outputs, inputs, device=weight.device, dtype=torch.float32)
            return (sums, weight_sums), (
                gradient, weight, out, weight_sums, *end.matrices(out), *sums, rows, *end.picture,
                outputs, inputs, end.stop, end.adds, weight.dtype == torch.float32, tall, across, stages,
            )  # fmt: skip

        pieces = inputs // across
        sums, weight_sums = walk(_together, arguments, warps, -(-rows // tall), pieces, weight.device)
        torch.sum(weight_sums, 0, out=conv.gradient)
        return sums

    key = rows, outputs, inputs, end.stop, end.adds, weight.dtype
    tile = tuning.tuner.choose("together", key, candidates(weight), launch, weight.device)
    return out, launch(tile)
