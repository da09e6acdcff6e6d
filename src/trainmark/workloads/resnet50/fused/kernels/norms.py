"""Of every channel: its statistics forward, and the sums that a norm's gradients need."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels.persistent import strips, tile_shape
from trainmark.workloads.resnet50.fused.kernels.reading import from_the_end, normed, tile_of
from trainmark.workloads.resnet50.fused.terms import Normed
from trainmark.workloads.resnet50.shared import recipe

FEW, MANY = 16, 256  # channels, and programs' sums of them, that are added up together


@triton.jit
def _moments(raw, totals, squares, rows, channels: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    near = tl.load(raw + c).to(tl.float32)
    total = tl.zeros([BM, BC], tl.float32)
    square = tl.zeros([BM, BC], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=4):
        place, there = tile_of(from_the_end(tile, rows, BM), c, rows, channels, BM)
        x = tl.load(raw + place, mask=there, other=0.0)
        away = tl.where(there, x.to(tl.float32) - near[None, :], 0.0)
        total += away
        square += away * away
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))
    tl.store(squares + tl.program_id(0) * channels + c, tl.sum(square, axis=0))


@triton.jit
def _added_up(one, two, c, count, channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
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
def added(partial, c, count, channels: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
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
    tl.store(out + c, added(partial, c, count, channels, BC, BP))


def added_up(partial):
    count, channels = partial.shape
    out = torch.empty(channels, device=partial.device, dtype=torch.float32)
    _add_up[(channels // FEW,)](partial, out, count, channels, FEW, MANY, num_warps=8)
    return out


@triton.jit
def _finish_statistics(
    totals, squares, pivot, scale, bias, running_mean, running_variance, out, rows, count, momentum, epsilon,
    channels: tl.constexpr, centred: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total, square = _added_up(totals, squares, c, count, channels, BC, BP)
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
    count = strips(rows, tall, across, channels, raw.device)
    partial = torch.empty(2, count, channels, device=raw.device, dtype=torch.float32)
    _moments[(count, channels // across)](raw, partial[0], partial[1], rows, channels, tall, across)
    return finish_statistics(raw, partial, norm, pivot=raw)  # sums around the first row: nothing cancels


def finish_statistics(raw, partial, norm, pivot):
    """From sums around the pivot, one row of them from each program."""
    return Normed(raw, *numbers_of(norm, partial, raw.shape[0], pivot))


def numbers_of(norm, partial, rows, pivot=None):
    """Factor, offset, mean and deviation; without a pivot, from sums, and squares around their own mean."""
    channels, centred = partial.shape[2], pivot is None
    out = torch.empty(4, channels, device=partial.device, dtype=torch.float32)
    _finish_statistics[(channels // FEW,)](
        partial[0], partial[1], norm.mean if centred else pivot, norm.scale, norm.bias, norm.mean,
        norm.variance, out, rows, partial.shape[1], recipe.BATCH_NORM_MOMENTUM, recipe.BATCH_NORM_EPSILON,
        channels, centred, FEW, MANY, num_warps=8,
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
        place, there = tile_of(from_the_end(tile, rows, BM), c, rows, channels, BM)
        g = tl.load(upper + place, mask=there, other=0.0).to(tl.float32)
        x = tl.load(raw + place, mask=there, other=0.0)
        if rectify:
            g = tl.where(normed(x, tl.load(factor + c), tl.load(offset + c)) > 0, g, 0.0)
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
    t, a = _added_up(totals, againsts, c, count, channels, BC, BP)
    by, own = batch_norm_grad_coefficients(c, t, a, scale, deviations, scale_gradient, bias_gradient, rows)
    tl.store(out + c, by)
    tl.store(out + channels + c, own)
    tl.store(out + 2 * channels + c, -by * t / rows - own * tl.load(mean + c))


def sums(upper, x, rectify=False):
    rows, channels = upper.shape
    tall, across = tile_shape(channels)
    count = strips(rows, tall, across, channels, upper.device)
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
    _finish_sums[(channels // FEW,)](
        partial[0], partial[1], norm.scale, x.deviation, x.mean, norm.scale_gradient, norm.bias_gradient, out,
        rows, partial.shape[1], channels, FEW, MANY, num_warps=8,
    )  # fmt: skip
    return tuple(out)
