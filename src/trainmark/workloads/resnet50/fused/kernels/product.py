"""1×1 convolutions: normalising on the way in, statistics on the way out."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import channels, tuning
from trainmark.workloads.resnet50.fused.kernels.reading import normed, striped
from trainmark.workloads.resnet50.fused.kernels.walking import walk
from trainmark.workloads.resnet50.fused.terms import Joined, Normed

PLAIN, RECTIFIED, JOINED, JOINED_NORMED = range(4)


@triton.jit
def weights_of(weight, n, at, k, inner: tl.constexpr, turned: tl.constexpr):
    if turned:
        return tl.load(weight + n[:, None] * inner + (at + k)[None, :])
    else:  # noqa: RET505 - two returns of different shapes must be two branches
        return tl.load(weight + n[None, :] * inner + (at + k)[:, None])


@triton.jit
def _product(
    x, weight, y, value, factor, offset, shortcut, shortcut_factor, shortcut_offset, pivot, totals, squares,
    rows,
    inner: tl.constexpr, outputs: tl.constexpr, reading: tl.constexpr, exact: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, turned: tl.constexpr, warps: tl.constexpr,
    stages: tl.constexpr,
):  # fmt: skip
    precision: tl.constexpr = "ieee" if exact else "tf32"
    across: tl.constexpr = outputs // BN
    column = tl.program_id(0) % across
    first = tl.program_id(0) // across
    step = tl.num_programs(0) // across
    n = column * BN + tl.arange(0, BN)
    near = tl.load(pivot + n)
    m = tl.arange(0, BM)
    k = tl.arange(0, BK)
    total = tl.zeros([BM if turned else warps * 8, BN], tl.float32)
    square = tl.zeros([BM if turned else warps * 8, BN], tl.float32)
    if inner == BK:
        w = weights_of(weight, n, 0, k, inner, turned)
    for tile in tl.range(first, tl.cdiv(rows, BM), step, num_stages=stages if inner == BK else 1):
        start = tile * tl.full([], BM, tl.int64)
        there = start + m < rows
        out = tl.zeros([BN, BM] if turned else [BM, BN], tl.float32)
        for at in tl.range(0, inner, BK, num_stages=1 if inner == BK else stages):
            place = start * inner + m[:, None] * inner + (at + k)[None, :]
            a = tl.load(x + place, mask=there[:, None], other=0.0)
            if reading != 0:
                a = normed(a, tl.load(factor + at + k), tl.load(offset + at + k))
                if reading >= 2:
                    other = tl.load(shortcut + place, mask=there[:, None], other=0.0)
                    if reading == 3:
                        f = tl.load(shortcut_factor + at + k)
                        a += normed(other, f, tl.load(shortcut_offset + at + k))
                    else:
                        a += other.to(tl.float32)
                a = tl.maximum(a, 0.0).to(weight.dtype.element_ty)
                if reading >= 2:
                    if column == 0:
                        tl.store(value + place, a, mask=there[:, None])
            if inner != BK:
                w = weights_of(weight, n, at, k, inner, turned)
            if turned:
                out = tl.dot(w, tl.trans(a), out, input_precision=precision)
            else:
                out = tl.dot(a, w, out, input_precision=precision)
        rounded = (tl.trans(out) if turned else out).to(y.dtype.element_ty)
        tl.store(y + start * outputs + m[:, None] * outputs + n[None, :], rounded, mask=there[:, None])
        away = tl.where(there[:, None], rounded.to(tl.float32) - near[None, :], 0.0)
        total += away if turned else striped(away, warps)
        square += away * away if turned else striped(away * away, warps)
    tl.store(totals + first * outputs + n, tl.sum(total, axis=0))
    tl.store(squares + first * outputs + n, tl.sum(square, axis=0))


# Rows, outputs and inner columns of a tile; whether the product is turned, so that what was computed on the
# way in lies in shared memory and not in registers; warps, stages.
TILES = [
    (64, 64, 64, True, 4, 3),
    (64, 64, 128, True, 4, 2),
    (64, 128, 64, True, 8, 3),
    (64, 64, 64, False, 4, 3),
    (64, 128, 64, False, 4, 3),
    (128, 128, 64, False, 8, 3),
]


def candidates(inner, outputs):
    """The tiles that divide this product; none where it is better left to a library."""
    if inner * outputs > tuning.MOST_WEIGHTS:
        return []
    return [tile for tile in TILES if outputs % tile[1] == 0 and inner % tile[2] == 0]


FUSED, APART = "fused", "apart"


def product(x, conv):
    """`value(x) · weightᵀ`, ready to be normed; a joined operand gets its value on the way."""
    weight, norm = conv.weight, conv.norm
    source, reading, parts = _operand(x)
    value = torch.empty_like(source) if reading >= JOINED else source

    def launch(way, norm):
        if way == FUSED:
            stored, (y, partial) = value, _fused(source, weight, norm.mean, reading, parts, value)
            if y.dtype != torch.float32:
                return stored, channels.finish_statistics(y, partial, norm, pivot=norm.mean)
            # Where the running mean lies far away, float32 would show it.
        else:
            stored = channels.computed(x)
            y = stored @ weight.T
        return stored, channels.statistics(y, norm)

    def tried(way):
        launch(way, norm.copy())

    key = source.shape[0], *weight.shape, reading, source.dtype
    ways = [FUSED, APART] if candidates(weight.shape[1], weight.shape[0]) else [APART]
    way = tuning.tuner.choose("product_way", key, ways, tried, source.device)
    stored, y = launch(way, norm)
    if isinstance(x, Joined):
        x.value = stored
    return y


def _fused(source, weight, pivot, reading, parts, value):
    rows, (outputs, inner) = source.shape[0], weight.shape
    y = torch.empty(rows, outputs, device=source.device, dtype=source.dtype)

    def launch(tile):
        tall, across, _, _, warps, _ = tile

        def arguments(strips):
            partial = torch.empty(2, strips, outputs, device=source.device, dtype=torch.float32)
            return partial, (
                source, weight, y, value, *parts, pivot, *partial, rows,
                inner, outputs, reading, source.dtype == torch.float32, *tile,
            )  # fmt: skip

        return walk(_product, arguments, warps, -(-rows // tall), outputs // across, source.device)

    key = rows, inner, outputs, reading, source.dtype
    tried = candidates(inner, outputs)
    return y, launch(tuning.tuner.choose("product", key, tried, launch, source.device))


def multiply(a, b, out):
    """A library's product of halves, stored as it was added up, in float32."""
    if a.is_cuda and a.dtype != out.dtype:
        torch.ops.aten.mm.dtype_out(a, b, out.dtype, out=out)
    else:
        out.copy_(a.to(out.dtype) @ b.to(out.dtype))


def _operand(x):
    """The matrix to read, how, and the numbers that go with it."""
    if isinstance(x, Joined) and x.value is not None:
        x = x.value
    if isinstance(x, Normed):
        return x.raw, RECTIFIED, (x.factor, x.offset, x.raw, x.factor, x.offset)
    if not isinstance(x, Joined):
        return x, PLAIN, (x, x, x, x, x)
    numbers, other = (x.norm.factor, x.norm.offset), x.shortcut
    if isinstance(other, Normed):
        return x.norm.raw, JOINED_NORMED, (*numbers, other.raw, other.factor, other.offset)
    return x.norm.raw, JOINED, (*numbers, other, *numbers)
