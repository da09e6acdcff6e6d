"""The stem's max-pooling with batch norm on its way in, and global average pooling backward.

Which of nine was largest is stored in a byte.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.tiles import program_count, tile_of, tile_shape

POOL_WIDTH = 64
# Pixels of a row that are done together, and warps.
POOL_TILES = [(64, 4), (64, 8), (32, 4), (32, 2), (16, 2)]


@triton.jit
def _pool(raw, factor, out, which, rows, columns, half_rows, half_columns, BM: tl.constexpr):
    line, right = tl.program_id(0), tl.program_id(1) * BM + tl.arange(0, BM)
    c = tl.arange(0, 64)
    there = right < half_columns
    image, top = line // half_rows, line % half_rows * 2 - 1
    # A norm keeps the order of its values, or turns it round: the largest is found among the raw ones.
    kind: tl.constexpr = raw.dtype.element_ty
    sign = tl.where(tl.load(factor + c) < 0, -1.0, 1.0).to(kind)[None, :]
    best = tl.full([BM, 64], float("-inf"), kind)
    place = tl.zeros([BM, 64], tl.int32)
    for tap in tl.static_range(9):
        down, column = top + tap // 3, right * 2 - 1 + tap % 3
        # What is asked of the row is one number, and is asked of every pixel: an interpreter needs it so.
        row = down + tl.zeros([BM], tl.int32)
        inside = there & (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        start = (image * rows + down).to(tl.int64) * columns * 64
        x = tl.load(raw + start + column[:, None] * 64 + c[None, :], mask=inside[:, None], other=0.0)
        v = tl.where(inside[:, None], x * sign, float("-inf")).to(kind)
        place = tl.where(v > best, tap, place)
        best = tl.maximum(best, v)
    target = line.to(tl.int64) * half_columns * 64 + right[:, None] * 64 + c[None, :]
    tl.store(out + target, best * sign, mask=there[:, None])
    tl.store(which + target, place.to(tl.uint8), mask=there[:, None])


def pool(x, shape):
    """The largest of 3×3 in steps of two, still to be normed, and which of the nine it was."""
    images, rows, columns = shape
    half_rows, half_columns = (rows + 1) // 2, (columns + 1) // 2
    lines = images * half_rows
    out = torch.empty(lines * half_columns, POOL_WIDTH, device=x.raw.device, dtype=x.raw.dtype)
    which = torch.empty(lines * half_columns, POOL_WIDTH, device=x.raw.device, dtype=torch.uint8)

    def launch(tile):
        tall, warps = tile
        _pool[(lines, -(-half_columns // tall))](
            x.raw, x.factor, out, which, rows, columns, half_rows, half_columns, tall, num_warps=warps
        )

    launch(tuning.tuner.choose("pool", (*shape, out.dtype), POOL_TILES, launch, out.device))
    return x.of(out), which


@triton.jit
def _read_windows(upper, which, high, j, c, half_columns, there):
    """What windows of a row chose and what came back to them, and the same of those to their right."""
    # Read whole and then chosen from: a mask that changes within a row would break it into elements.
    place = high.to(tl.int64) * half_columns * 64 + j[:, None] * 64 + c[None, :]
    chosen = tl.load(which + place, mask=there[:, None], other=9).to(tl.int32)
    g = tl.load(upper + place, mask=there[:, None], other=0.0).to(tl.float32)
    there = (there & (j + 1 < half_columns))[:, None]
    chosen_right = tl.load(which + place + 64, mask=there, other=9).to(tl.int32)
    g_right = tl.load(upper + place + 64, mask=there, other=0.0).to(tl.float32)
    return chosen, g, chosen_right, g_right


@triton.jit
def _window_gradients(read, tap: tl.constexpr):
    """What these windows send to the even and odd pixels of a row; `tap` is their first place there."""
    chosen, g, chosen_right, g_right = read
    even = tl.where(chosen == tap + 1, g, 0.0)
    odd = tl.where(chosen == tap + 2, g, 0.0) + tl.where(chosen_right == tap, g_right, 0.0)
    return even, odd


@triton.jit
def _pool_back(
    upper, which, raw, out, by, own, rest, rows, columns, half_rows, half_columns, BM: tl.constexpr
):
    line, j = tl.program_id(0), tl.program_id(1) * BM + tl.arange(0, BM)
    c = tl.arange(0, 64)
    down = line % rows
    high = line // rows * half_rows + down // 2
    inside = j < half_columns
    here = _read_windows(upper, which, high, j, c, half_columns, inside)
    if down % 2 == 0:  # in the middle of a row of windows; else between two
        even, odd = _window_gradients(here, 3)
    else:
        even, odd = _window_gradients(here, 6)
        if down // 2 + 1 < half_rows:
            more = _window_gradients(_read_windows(upper, which, high + 1, j, c, half_columns, inside), 0)
            even += more[0]
            odd += more[1]
    numbers = tl.load(by + c)[None, :], tl.load(own + c)[None, :], tl.load(rest + c)[None, :]
    for side in tl.static_range(2):
        right = j * 2 + side
        there = (right < columns)[:, None]
        place = line.to(tl.int64) * columns * 64 + right[:, None] * 64 + c[None, :]
        x = tl.load(raw + place, mask=there, other=0.0).to(tl.float32)
        d = numbers[0] * (odd if side else even) + numbers[1] * x + numbers[2]
        tl.store(out + place, d.to(out.dtype.element_ty), mask=there)


def pool_back(s, which, shape):
    """The gradient of what was pooled; `s.upper` has a row for each chosen."""
    images, rows, columns = shape
    half_rows, half_columns = (rows + 1) // 2, (columns + 1) // 2
    out = torch.empty_like(s.norm.raw)

    def launch(tile):
        tall, warps = tile
        _pool_back[(images * rows, -(-half_columns // tall))](
            s.upper, which, s.norm.raw, out, s.by, s.own, s.rest, rows, columns,
            half_rows, half_columns, tall, num_warps=warps,
        )  # fmt: skip

    launch(tuning.tuner.choose("pool_back", (*shape, out.dtype), POOL_TILES, launch, out.device))
    return out


@triton.jit
def _head_back(
    gradient, value, out, totals, rows, places,
    channels: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    m = tl.arange(0, BM)
    total = tl.zeros([BM, BC], tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0)):
        place, there = tile_of(tile, c, rows, channels, BM)
        image = (tile * BM + m) // places
        g = tl.load(gradient + image[:, None] * channels + c[None, :], mask=there, other=0.0)
        passes = tl.load(value + place, mask=there, other=0.0) > 0
        stopped = tl.where(passes, g.to(tl.float32) / places, 0.0).to(out.dtype.element_ty)
        tl.store(out + place, stopped, mask=there)
        total += stopped.to(tl.float32)
    tl.store(totals + tl.program_id(0) * channels + c, tl.sum(total, axis=0))


def head_back(gradient, onto, images):
    """From the gradient of every image's mean to that of the last block, and its sums."""
    rows, width = onto.value.shape
    tall, across = tile_shape(width)
    count = program_count(rows, tall, across, width, gradient.device)
    out = torch.empty_like(onto.value)
    totals = torch.empty(count, width, device=gradient.device, dtype=torch.float32)
    _head_back[(count, width // across)](
        gradient, onto.value, out, totals, rows, rows // images, width, tall, across,
    )  # fmt: skip
    return out, totals
