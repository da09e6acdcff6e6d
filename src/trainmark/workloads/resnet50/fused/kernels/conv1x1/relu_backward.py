"""What ends a library's product: the shortcut's gradient is added, ReLU stops both, sums are taken."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels.persistent import strips, tile_shape
from trainmark.workloads.resnet50.fused.kernels.reading import from_the_end, normed, tile_of, wide_row


@triton.jit
def spread_row(row, picture_rows: tl.constexpr, picture_columns: tl.constexpr):
    """Where the row of a picture lies among every second row and column of it, and whether it does."""
    down = row // picture_columns % picture_rows
    right = row % picture_columns
    half_rows = (picture_rows + 1) // 2
    half_columns = (picture_columns + 1) // 2
    image = row // (picture_rows * picture_columns)
    small = (image * half_rows + down // 2) * half_columns + right // 2
    return small, (down % 2 == 0) & (right % 2 == 0)


@triton.jit
def with_addend(
    g, addend, tile, c, place, there, picture_rows: tl.constexpr, picture_columns: tl.constexpr,
    width: tl.constexpr, adds: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """A tile of a gradient and what comes to it by the shortcut."""
    if adds == 1:
        g += tl.load(addend + place, mask=there, other=0.0).to(tl.float32)
    if adds == 2:
        small, lies = spread_row(tile * BM + tl.arange(0, BM), picture_rows, picture_columns)
        lies = there & lies[:, None]
        g += tl.load(addend + wide_row(small) * width + c[None, :], mask=lies, other=0.0).to(tl.float32)
    return g


@triton.jit
def _stopped(
    gradient, mixed, units, constant, addend, onto, factor, offset, mean,
    totals, againsts, rows, picture_rows: tl.constexpr, picture_columns: tl.constexpr,
    width: tl.constexpr, stop: tl.constexpr, adds: tl.constexpr, mixes: tl.constexpr,
    BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros([BM, BC], tl.float32)
    against = tl.zeros([BM, BC], tl.float32)
    for at in tl.range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0), num_stages=3):
        tile = from_the_end(at, rows, BM)
        place, there = tile_of(tile, c, rows, width, BM)
        g = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        if mixes:
            g = g * tl.load(units) - tl.load(constant + c)[None, :]
            g += tl.load(mixed + place, mask=there, other=0.0).to(tl.float32) * tl.load(units + 1)
        g = with_addend(g, addend, tile, c, place, there, picture_rows, picture_columns, width, adds, BM)
        if stop != 0:
            x = tl.load(onto + place, mask=there, other=0.0).to(tl.float32)
            reached = x
            if stop == 1:
                reached = normed(x, tl.load(factor + c), tl.load(offset + c))
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


def stopped(gradient, end, mixed=None):
    """In place; the sums are one row from each program. `mixed`: a second part, units and a constant."""
    rows, width = gradient.shape
    tall, across = tile_shape(width)
    count = strips(rows, tall, across, width, gradient.device)
    partial = torch.empty(2, count, width, device=gradient.device, dtype=torch.float32)
    if end.stop or end.adds or mixed:
        _stopped[(count, width // across)](
            gradient, *(mixed or [gradient] * 3), *end.matrices(gradient), *partial, rows, *end.picture,
            width, end.stop, end.adds, mixed is not None, tall, across,
        )  # fmt: skip
    return partial
