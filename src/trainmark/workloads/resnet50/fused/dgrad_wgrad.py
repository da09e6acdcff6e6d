"""Both gradients of a 1×1 convolution, dgrad and wgrad, by the fastest way for its shape on this device.

In one pass the operand is read once and its own ReLU stops its gradient; a program keeps its part of the
weights' gradient in registers, so the convolution has few outputs. Else the products are the library's,
and an epilogue adds the shortcut's gradient, applies ReLU's backward and takes sums.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused import batch_norm
from trainmark.workloads.resnet50.fused.conv1x1 import matmul_into
from trainmark.workloads.resnet50.fused.network import INLINE, PendingNorm
from trainmark.workloads.resnet50.fused.tiles import (
    launch_persistent,
    program_count,
    reversed_tile,
    row_int64,
    scale_shift,
    tile_of,
    tile_shape,
)

FREE, RECTIFIED, JOINED = range(3)
ADDS_NONE, ADDS, ADDS_SPREAD = range(3)


class Epilogue:
    """As numbers and pointers for a kernel; where there is nothing, a pointer that nobody reads stands in."""

    def __init__(self, onto=None, addend=None, spread=None):
        self.onto, self.addend = onto, addend
        self.adds = ADDS_NONE if addend is None else ADDS if spread is None else ADDS_SPREAD
        self.picture = spread[1:] if spread else (1, 1)
        self.stop = FREE if onto is None else RECTIFIED if isinstance(onto, PendingNorm) else JOINED

    def matrices(self, anything):
        """The addend; the operand, raw or as a value, and its norm."""
        addend = anything if self.addend is None else self.addend
        if self.stop == RECTIFIED:
            return addend, self.onto.raw, self.onto.factor, self.onto.offset, self.onto.mean
        read = self.onto.value if self.stop == JOINED else anything
        return addend, read, anything, anything, anything

    def sums(self, partial):
        """What the operand's norm needs, or only the totals, which are all that a block's end needs."""
        return {FREE: None, RECTIFIED: partial, JOINED: partial[0]}[self.stop]


@triton.jit
def unstrided_row(row, picture_rows: tl.constexpr, picture_columns: tl.constexpr):
    """Where the row of a picture lies among every second row and column of it, and whether it does."""
    down = row // picture_columns % picture_rows
    right = row % picture_columns
    half_rows = (picture_rows + 1) // 2
    half_columns = (picture_columns + 1) // 2
    image = row // (picture_rows * picture_columns)
    small = (image * half_rows + down // 2) * half_columns + right // 2
    return small, (down % 2 == 0) & (right % 2 == 0)


@triton.jit
def add_shortcut_gradient(
    g, addend, tile, c, place, there, picture_rows: tl.constexpr, picture_columns: tl.constexpr,
    width: tl.constexpr, adds: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """A tile of a gradient and what comes to it by the shortcut."""
    if adds == 1:
        g += tl.load(addend + place, mask=there, other=0.0).to(tl.float32)
    if adds == 2:
        small, lies = unstrided_row(tile * BM + tl.arange(0, BM), picture_rows, picture_columns)
        lies = there & lies[:, None]
        g += tl.load(addend + row_int64(small) * width + c[None, :], mask=lies, other=0.0).to(tl.float32)
    return g


@triton.jit
def _relu_backward(
    gradient, mixed, units, constant, addend, onto, factor, offset, mean,
    totals, againsts, rows, picture_rows: tl.constexpr, picture_columns: tl.constexpr,
    width: tl.constexpr, stop: tl.constexpr, adds: tl.constexpr, mixes: tl.constexpr,
    BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros([BM, BC], tl.float32)
    against = tl.zeros([BM, BC], tl.float32)
    for at in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=3):
        tile = reversed_tile(at, rows, BM)
        place, there = tile_of(tile, c, rows, width, BM)
        g = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        if mixes:
            g = g * tl.load(units) - tl.load(constant + c)[None, :]
            g += tl.load(mixed + place, mask=there, other=0.0).to(tl.float32) * tl.load(units + 1)
        g = add_shortcut_gradient(
            g, addend, tile, c, place, there, picture_rows, picture_columns, width, adds, BM
        )
        if stop != 0:
            x = tl.load(onto + place, mask=there, other=0.0).to(tl.float32)
            reached = x
            if stop == 1:
                reached = scale_shift(x, tl.load(factor + c), tl.load(offset + c))
            g = tl.where((reached > 0) & there, g, 0.0)
        rounded = g.to(gradient.dtype.element_ty)
        tl.store(gradient + place, rounded, mask=there)
        if stop != 0:
            g = rounded.to(tl.float32)
            total += g
            if stop == 1:
                against += g * (x - tl.load(mean + c)[None, :])
    if stop != 0:
        tl.store(totals + tl.program_id(0) * width + c, tl.sum(total, axis=0))
        if stop == 1:
            tl.store(againsts + tl.program_id(0) * width + c, tl.sum(against, axis=0))


def relu_backward(gradient, end, mixed=None):
    """In place; the sums are one row from each program. `mixed`: a second part, units and a constant."""
    rows, width = gradient.shape
    tall, across = tile_shape(width)
    count = program_count(rows, tall, across, width, gradient.device)
    partial = torch.empty(2, count, width, device=gradient.device, dtype=torch.float32)
    if end.stop or end.adds or mixed:
        _relu_backward[(count, width // across)](
            gradient, *(mixed or [gradient] * 3), *end.matrices(gradient), *partial, rows, *end.picture,
            width, end.stop, end.adds, mixed is not None, tall, across,
        )  # fmt: skip
    return partial


SUMS_PER_WARP = 64 * 32  # of the sums: 64 in each thread
MOST_WEIGHTS = 256 * 512
MOST_ROW_BYTES = 512  # of a row of outputs, since shared memory holds tiles of them


@triton.jit
def _dgrad_wgrad(
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
            value = tl.maximum(scale_shift(read, tl.load(onto_factor + n), tl.load(onto_offset + n)), 0.0)
        passes = value > 0
        # The other way round: a product's second operand is read from shared memory, where both find `d`.
        weight_sum = tl.dot(tl.trans(value.to(d.dtype)), d, weight_sum, input_precision=precision)
        back = tl.trans(tl.dot(w, tl.trans(d), input_precision=precision))
        back = add_shortcut_gradient(
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
    if weight.numel() > MOST_WEIGHTS or outputs * weight.element_size() > MOST_ROW_BYTES:
        return []
    return [tile for tile in TILES if inputs % tile[1] == 0 and outputs * tile[1] <= SUMS_PER_WARP * tile[2]]


def dgrad_wgrad(gradient, conv, end):
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
        sums, weight_sums = launch_persistent(
            _dgrad_wgrad, arguments, warps, -(-rows // tall), pieces, weight.device
        )
        torch.sum(weight_sums, 0, out=conv.gradient)
        return sums

    key = rows, outputs, inputs, end.stop, end.adds, weight.dtype
    tile = tuning.tuner.choose("together", key, candidates(weight), launch, weight.device)
    return out, launch(tile)


TOGETHER, APART = "together", "apart"


def conv1x1_backward(s, x, conv, beside, onto=None, addend=None, spread=None):
    """That of the weights goes to its place, in time; given is the operand's, with the sums that follow."""
    end = Epilogue(onto, addend, spread)
    gradient = batch_norm.batch_norm_backward(s)

    def launch(way, beside=INLINE):
        if way == TOGETHER:
            return dgrad_wgrad(gradient, conv, end)
        return _library_products(gradient, x, conv, end, beside)

    weight = conv.weight
    key = s.upper.shape[0], *weight.shape, type(x).__name__, end.stop, end.adds, weight.dtype
    # In one pass, the operand is also what stops its gradient.
    ways = [TOGETHER, APART] if onto is x and candidates(weight) else [APART]
    way = tuning.tuner.choose("conv1x1_backward", key, ways, launch, weight.device)
    out, partial = launch(way, beside)
    return out, end.sums(partial)


def _library_products(gradient, x, conv, end, beside):
    """The products are the library's."""
    operand = batch_norm.materialized(x)
    beside.begin(lambda: matmul_into(gradient.T, operand, conv.gradient))
    out = gradient @ conv.weight
    return out, relu_backward(out, end)
