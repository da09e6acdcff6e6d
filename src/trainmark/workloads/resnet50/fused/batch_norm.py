"""Batch norm and ReLU channel by channel, where no product does it on its way.

Of every channel the statistics forward, and the sums that the gradients of a norm need; then what is
applied to a matrix.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.network import PendingNorm, ResidualSum
from trainmark.workloads.resnet50.fused.tiles import (
    batch_norm_grad,
    program_count,
    reversed_tile,
    row_int64,
    scale_shift,
    tile_of,
    tile_shape,
)
from trainmark.workloads.resnet50.shared import recipe

CHANNELS_PER_PROGRAM, PARTIALS_PER_BLOCK = (
    16,
    256,
)  # channels, and programs' sums of them, that are added up together


@triton.jit
def _moments(raw, totals, squares, rows, channels: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    near = tl.load(raw + c).to(tl.float32)
    total = tl.zeros([BM, BC], tl.float32)
    square = tl.zeros([BM, BC], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=4):
        place, there = tile_of(reversed_tile(tile, rows, BM), c, rows, channels, BM)
        x = tl.load(raw + place, mask=there, other=0.0)
        away = tl.where(there, x.to(tl.float32) - near[None, :], 0.0)
        total += away
        square += away * away
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))
    tl.store(squares + tl.program_id(0) * channels + c, tl.sum(square, axis=0))


@triton.jit
def _sum_two_partials(one, two, c, count, channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    """What all programs have summed, each in a row of its own."""
    p = tl.arange(0, BP)
    first = tl.zeros([BP, BC], tl.float32)
    second = tl.zeros([BP, BC], tl.float32)
    for start in range(0, count, BP):
        place = (start + p)[:, None] * channels + c[None, :]
        there = (start + p < count)[:, None]
        first += tl.load(one + place, mask=there, other=0.0)
        second += tl.load(two + place, mask=there, other=0.0)
    return tl.sum(first, axis=0), tl.sum(second, axis=0)


@triton.jit
def sum_partials(partial, c, count, channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    """The same, of one kind of sums."""
    p = tl.arange(0, BP)
    total = tl.zeros([BP, BC], tl.float32)
    for start in range(0, count, BP):
        place = (start + p)[:, None] * channels + c[None, :]
        total += tl.load(partial + place, mask=(start + p < count)[:, None], other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def _add_up(partial, out, count, channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    tl.store(out + c, sum_partials(partial, c, count, channels, BC, BP))


def summed_partials(partial):
    count, channels = partial.shape
    out = torch.empty(channels, device=partial.device, dtype=torch.float32)
    _add_up[(channels // CHANNELS_PER_PROGRAM,)](
        partial, out, count, channels, CHANNELS_PER_PROGRAM, PARTIALS_PER_BLOCK, num_warps=8
    )
    return out


@triton.jit
def _finish_statistics(
    totals, squares, pivot, scale, bias, running_mean, running_variance, out, rows, count, momentum, epsilon,
    channels: tl.constexpr, centred: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total, square = _sum_two_partials(totals, squares, c, count, channels, BC, BP)
    mean = total / rows
    variance = square / rows
    if not centred:
        variance -= mean * mean
        mean += tl.load(pivot + c).to(tl.float32)
    variance = tl.maximum(variance, 0.0)
    deviation = tl.rsqrt(variance + epsilon)
    factor = tl.load(scale + c) * deviation
    tl.store(out + c, factor)
    tl.store(out + channels + c, tl.load(bias + c) - mean * factor)
    tl.store(out + 2 * channels + c, mean)
    tl.store(out + 3 * channels + c, deviation)
    before = tl.load(running_mean + c)
    tl.store(running_mean + c, before + momentum * (mean - before))
    before = tl.load(running_variance + c)
    tl.store(running_variance + c, before + momentum * (variance * (rows / (rows - 1.0)) - before))


def statistics(raw, norm):
    rows, channels = raw.shape
    tall, across = tile_shape(channels)
    count = program_count(rows, tall, across, channels, raw.device)
    partial = torch.empty(2, count, channels, device=raw.device, dtype=torch.float32)
    _moments[(count, channels // across)](raw, partial[0], partial[1], rows, channels, tall, across)
    return finish_statistics(raw, partial, norm, pivot=raw)  # sums around the first row: nothing cancels


def finish_statistics(raw, partial, norm, pivot):
    """From sums around the pivot, one row of them from each program."""
    return PendingNorm(raw, *finished_norm(norm, partial, raw.shape[0], pivot))


def finished_norm(norm, partial, rows, pivot=None):
    """Factor, offset, mean and deviation; without a pivot, from sums, and squares around their own mean."""
    channels, centred = partial.shape[2], pivot is None
    out = torch.empty(4, channels, device=partial.device, dtype=torch.float32)
    _finish_statistics[(channels // CHANNELS_PER_PROGRAM,)](
        partial[0], partial[1], norm.mean if centred else pivot, norm.scale, norm.bias, norm.mean,
        norm.variance, out, rows, partial.shape[1], recipe.BATCH_NORM_MOMENTUM, recipe.BATCH_NORM_EPSILON,
        channels, centred, CHANNELS_PER_PROGRAM, PARTIALS_PER_BLOCK, num_warps=8,
    )  # fmt: skip
    return tuple(out)


# Sums for the gradients of a norm


@triton.jit
def _sums(
    upper, raw, mean, factor, offset, totals, againsts, rows,
    channels: tl.constexpr, rectify: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    middle = tl.load(mean + c)
    total = tl.zeros([BM, BC], tl.float32)
    against = tl.zeros([BM, BC], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=4):
        place, there = tile_of(reversed_tile(tile, rows, BM), c, rows, channels, BM)
        g = tl.load(upper + place, mask=there, other=0.0).to(tl.float32)
        x = tl.load(raw + place, mask=there, other=0.0)
        if rectify:
            g = tl.where(scale_shift(x, tl.load(factor + c), tl.load(offset + c)) > 0, g, 0.0)
        total += g
        against += g * (x.to(tl.float32) - middle[None, :])
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))
    tl.store(againsts + tl.program_id(0) * channels + c, tl.sum(against, axis=0))


@triton.jit
def batch_norm_grad_coefficients(c, t, a, scale, deviations, scale_gradient, bias_gradient, rows):
    """Return the coefficients of a batch-norm gradient, and store the gradients of its scale and bias."""
    deviation = tl.load(deviations + c)
    tl.store(bias_gradient + c, t)
    tl.store(scale_gradient + c, a * deviation)
    by = tl.load(scale + c) * deviation
    return by, -by * deviation * deviation * a / rows


@triton.jit
def _finish_sums(
    totals, againsts, scale, deviations, mean, scale_gradient, bias_gradient, out, rows, count,
    channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t, a = _sum_two_partials(totals, againsts, c, count, channels, BC, BP)
    by, own = batch_norm_grad_coefficients(c, t, a, scale, deviations, scale_gradient, bias_gradient, rows)
    tl.store(out + c, by)
    tl.store(out + channels + c, own)
    tl.store(out + 2 * channels + c, -by * t / rows - own * tl.load(mean + c))


def sums(upper, x, rectify=False):
    rows, channels = upper.shape
    tall, across = tile_shape(channels)
    count = program_count(rows, tall, across, channels, upper.device)
    partial = torch.empty(2, count, channels, device=upper.device, dtype=torch.float32)
    _sums[(count, channels // across)](
        upper, x.raw, x.mean, x.factor, x.offset, partial[0], partial[1], rows,
        channels, rectify, tall, across,
    )  # fmt: skip
    return partial


def coefficients(partial, norm, x, rows):
    """Return those of a batch-norm gradient from each program's sums; set the gradients of scale and bias."""
    channels = x.mean.shape[0]
    out = torch.empty(3, channels, device=x.raw.device, dtype=torch.float32)
    _finish_sums[(channels // CHANNELS_PER_PROGRAM,)](
        partial[0], partial[1], norm.scale, x.deviation, x.mean, norm.scale_gradient, norm.bias_gradient, out,
        rows, partial.shape[1], channels, CHANNELS_PER_PROGRAM, PARTIALS_PER_BLOCK, num_warps=8,
    )  # fmt: skip
    return tuple(out)


@triton.jit
def _batch_norm_backward(
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


def batch_norm_backward(s):
    """The gradient in front of a norm, stored over the one behind it."""
    rows, channels = s.upper.shape
    tall, across = tile_shape(channels)
    _batch_norm_backward[(-(-rows // tall), channels // across)](
        s.upper, s.norm.raw, s.by, s.own, s.rest, s.norm.factor, s.norm.offset, rows,
        channels, s.rectify, tall, across,
    )  # fmt: skip
    return s.upper


@triton.jit
def _bn_relu(
    raw, factor, offset, shortcut, shortcut_factor, shortcut_offset, out, rows,
    channels: tl.constexpr, joins: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    place, there = tile_of(reversed_tile(tl.program_id(0), rows, BM), c, rows, channels, BM)
    x = scale_shift(tl.load(raw + place, mask=there, other=0.0), tl.load(factor + c), tl.load(offset + c))
    if joins:
        other = tl.load(shortcut + place, mask=there, other=0.0)
        if joins == 2:
            x += scale_shift(other, tl.load(shortcut_factor + c), tl.load(shortcut_offset + c))
        else:
            x += other.to(tl.float32)
    tl.store(out + place, tl.maximum(x, 0.0).to(out.dtype.element_ty), mask=there)


@triton.jit
def strided_row(row, picture_rows: tl.constexpr, picture_columns: tl.constexpr):
    """Where every second row and column of a picture lies in it."""
    half_rows = (picture_rows + 1) // 2
    half_columns = (picture_columns + 1) // 2
    image = row // (half_rows * half_columns)
    down = row // half_columns % half_rows * 2
    return (image * picture_rows + down) * picture_columns + row % half_columns * 2


@triton.jit
def _materialize_with_sum(
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
            row = strided_row(tile * BM + tl.arange(0, BM), picture_rows, picture_columns)
            source = row_int64(row) * channels + c[None, :]
        x = tl.load(raw + source, mask=there, other=0.0)
        if rectifies:
            x = tl.maximum(scale_shift(x, tl.load(factor + c), tl.load(offset + c)), 0.0).to(
                raw.dtype.element_ty
            )
        if rectifies or skips:
            tl.store(out + place, x, mask=there)
        total += tl.where(there, x.to(tl.float32), 0.0)
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))


def materialized_with_sum(x, shape=None):
    """The value of an operand, or of every second row and column of its pictures; and the sum of its rows."""
    x = x.value if isinstance(x, ResidualSum) else x
    rectifies = isinstance(x, PendingNorm)
    source, numbers = (x.raw, (x.factor, x.offset)) if rectifies else (x, (x, x))
    channels = source.shape[1]
    images, down, right = shape or (source.shape[0], 1, 1)
    rows = images * ((down + 1) // 2) * ((right + 1) // 2)
    tall, across = tile_shape(channels)
    count = program_count(rows, tall, across, channels, source.device)
    out = source.new_empty(rows, channels) if rectifies or shape else source
    partial = torch.empty(count, channels, device=source.device, dtype=torch.float32)
    _materialize_with_sum[(count, channels // across)](
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
    return out, summed_partials(partial)


def bn_relu(x):
    return _launch_bn_relu(x, x, 0)


def residual_relu(x, shortcut):
    """The value of a block's end; the shortcut is a matrix, or again to be normed."""
    again = isinstance(shortcut, PendingNorm)
    return _launch_bn_relu(x, shortcut if again else x.of(shortcut), 2 if again else 1)


def materialized(x):
    """The value of an operand."""
    if isinstance(x, PendingNorm):
        return bn_relu(x)
    return x.value if isinstance(x, ResidualSum) else x


def _launch_bn_relu(x, other, joins):
    rows, channels = x.raw.shape
    tall, across = tile_shape(channels)
    out = torch.empty_like(x.raw)
    _bn_relu[(-(-rows // tall), channels // across)](
        x.raw, x.factor, x.offset, other.raw, other.factor, other.offset, out, rows,
        channels, joins, tall, across,
    )  # fmt: skip
    return out
