"""What is done to a matrix channel by channel, where no product does it on its way."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels.norms import added_up
from trainmark.workloads.resnet50.fused.kernels.persistent import strips, tile_shape
from trainmark.workloads.resnet50.fused.kernels.reading import (
    batch_norm_grad,
    from_the_end,
    normed,
    tile_of,
    wide_row,
)
from trainmark.workloads.resnet50.fused.terms import Joined, Normed


@triton.jit
def _apply(
    upper, raw, by, own, rest, factor, offset, rows,
    channels: tl.constexpr, rectify: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    place, there = tile_of(tl.program_id(0), c, rows, channels, BM)
    g = tl.load(upper + place, mask=there, other=0.0)
    x = tl.load(raw + place, mask=there, other=0.0)
    f, o = tl.load(factor + c), tl.load(offset + c)
    d = batch_norm_grad(g, x, tl.load(by + c), tl.load(own + c), tl.load(rest + c), f, o, rectify)
    tl.store(upper + place, d.to(upper.dtype.element_ty), mask=there)


def apply(s):
    """The gradient in front of a norm, stored over the one behind it."""
    rows, channels = s.upper.shape
    tall, across = tile_shape(channels)
    _apply[(-(-rows // tall), channels // across)](
        s.upper, s.norm.raw, s.by, s.own, s.rest, s.norm.factor, s.norm.offset, rows,
        channels, s.rectify, tall, across,
    )  # fmt: skip
    return s.upper


@triton.jit
def _rectified(
    raw, factor, offset, shortcut, shortcut_factor, shortcut_offset, out, rows,
    channels: tl.constexpr, joins: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    place, there = tile_of(from_the_end(tl.program_id(0), rows, BM), c, rows, channels, BM)
    x = normed(tl.load(raw + place, mask=there, other=0.0), tl.load(factor + c), tl.load(offset + c))
    if joins:
        other = tl.load(shortcut + place, mask=there, other=0.0)
        if joins == 2:
            x += normed(other, tl.load(shortcut_factor + c), tl.load(shortcut_offset + c))
        else:
            x += other.to(tl.float32)
    tl.store(out + place, tl.maximum(x, 0.0).to(out.dtype.element_ty), mask=there)


@triton.jit
def skipping_row(row, picture_rows: tl.constexpr, picture_columns: tl.constexpr):
    """Where every second row and column of a picture lies in it."""
    half_rows = (picture_rows + 1) // 2
    half_columns = (picture_columns + 1) // 2
    image = row // (half_rows * half_columns)
    down = row // half_columns % half_rows * 2
    return (image * picture_rows + down) * picture_columns + row % half_columns * 2


@triton.jit
def _summed(
    raw, factor, offset, out, totals, rows,
    picture_rows: tl.constexpr, picture_columns: tl.constexpr, channels: tl.constexpr,
    rectifies: tl.constexpr, skips: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros([BM, BC], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=4):
        place, there = tile_of(tile, c, rows, channels, BM)
        source = place
        if skips:
            row = skipping_row(tile * BM + tl.arange(0, BM), picture_rows, picture_columns)
            source = wide_row(row) * channels + c[None, :]
        x = tl.load(raw + source, mask=there, other=0.0)
        if rectifies:
            x = tl.maximum(normed(x, tl.load(factor + c), tl.load(offset + c)), 0.0).to(raw.dtype.element_ty)
        if rectifies or skips:
            tl.store(out + place, x, mask=there)
        total += tl.where(there, x.to(tl.float32), 0.0)
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))


def summed(x, shape=None):
    """The value of an operand, or of every second row and column of its pictures; and the sum of its rows."""
    x = x.value if isinstance(x, Joined) else x
    rectifies = isinstance(x, Normed)
    source, numbers = (x.raw, (x.factor, x.offset)) if rectifies else (x, (x, x))
    channels = source.shape[1]
    images, down, right = shape or (source.shape[0], 1, 1)
    rows = images * ((down + 1) // 2) * ((right + 1) // 2)
    tall, across = tile_shape(channels)
    count = strips(rows, tall, across, channels, source.device)
    out = source.new_empty(rows, channels) if rectifies or shape else source
    partial = torch.empty(count, channels, device=source.device, dtype=torch.float32)
    _summed[(count, channels // across)](
        source,
        *numbers,
        out,
        partial,
        rows,
        down,
        right,
        channels,
        rectifies,
        shape is not None,
        tall,
        across,
    )
    return out, added_up(partial)


def rectified(x):
    return _launch_rectified(x, x, 0)


def joined(x, shortcut):
    """The value of a block's end; the shortcut is a matrix, or again to be normed."""
    again = isinstance(shortcut, Normed)
    return _launch_rectified(x, shortcut if again else x.of(shortcut), 2 if again else 1)


def computed(x):
    """The value of an operand."""
    if isinstance(x, Normed):
        return rectified(x)
    return x.value if isinstance(x, Joined) else x


def _launch_rectified(x, other, joins):
    rows, channels = x.raw.shape
    tall, across = tile_shape(channels)
    out = torch.empty_like(x.raw)
    _rectified[(-(-rows // tall), channels // across)](
        x.raw, x.factor, x.offset, other.raw, other.factor, other.offset, out, rows,
        channels, joins, tall, across,
    )  # fmt: skip
    return out
