"""The stem: a 7×7 convolution of three channels and stride 2, as 4×4 over cells of 2×2 pixels."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels import norms
from trainmark.workloads.resnet50.fused.kernels.persistent import walk
from trainmark.workloads.resnet50.fused.kernels.reading import striped, wide_row

WIDTH, CELLS, DEPTH = 64, 4, 16  # outputs; cells of the kernel; channels of a cell
LINE = CELLS * DEPTH  # what one row of cells gives to an output, in one piece


@triton.jit
def _fold(
    images, out, count, rows, columns, by_image, by_channel, by_row, by_column, cell_rows, cell_columns,
    BM: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    channel = tl.arange(0, 16)
    image = at // (cell_rows * cell_columns)
    down = ((at // cell_columns % cell_rows - 2) * 2)[:, None] + (channel // 6)[None, :]
    right = ((at % cell_columns - 2) * 2)[:, None] + (channel // 3 % 2)[None, :]
    inside = (down >= 0) & (down < rows) & (right >= 0) & (right < columns) & (channel < 12)[None, :]
    place = wide_row(image) * by_image + (channel % 3)[None, :] * by_channel
    place += down * by_row + right * by_column
    pixel = tl.load(images + place, mask=inside & (at < count)[:, None], other=0.0)
    target = wide_row(at) * 16 + channel[None, :]
    tl.store(out + target, pixel.to(out.dtype.element_ty), mask=(at < count)[:, None])


def fold(images, kind):
    """Cells of 2×2 pixels as 12 channels of 16, with a margin."""
    count, _, rows, columns = images.shape
    cell_rows, cell_columns = ((side + 1) // 2 + 3 for side in (rows, columns))
    out = torch.empty(count, cell_rows, cell_columns, DEPTH, device=images.device, dtype=kind)
    cells = count * cell_rows * cell_columns
    _fold[(-(-cells // 256),)](
        images, out, cells, rows, columns, *images.stride(), cell_rows, cell_columns, 256
    )
    return out


@triton.jit
def piece_of(tile, rows, columns, BM: tl.constexpr, LINES: tl.constexpr):
    """A tile is a piece of one row of a picture, or of two, which share three of their four lines of cells.

    Given are its first output, its first cell, and what of either row is there.
    """
    pieces = tl.cdiv(columns, BM)
    pairs = tl.cdiv(rows, LINES)
    right = tile % pieces * BM
    image = tile // pieces // pairs
    down = tile // pieces % pairs * LINES
    row = (image * rows + down) * columns + right
    cell = (image * (rows + 3) + down) * (columns + 3) + right
    m = tl.arange(0, BM)
    there = right + m < columns
    below = there & (down + 1 + m * 0 < rows)
    return row.to(tl.int64), cell.to(tl.int64) * 16, there[:, None], below[:, None]


@triton.jit
def line_of(folded, start, line, columns, there, BM: tl.constexpr):
    """Of a line of cells the four neighbouring ones that every output reads."""
    first = start + line * (columns + 3) * 16
    place = first + tl.arange(0, BM)[:, None] * 16 + tl.arange(0, 64)[None, :]
    return tl.load(folded + place, mask=there, other=0.0)


@triton.jit
def _stem(
    folded, weight, y, pivot, totals, squares, tiles, rows, columns,
    exact: tl.constexpr, BM: tl.constexpr, warps: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    n = tl.arange(0, 64)
    k = tl.arange(0, 64)
    m = tl.arange(0, BM)
    near = tl.load(pivot + n)
    w = weight + n[None, :] * 256 + k[:, None]
    w = tl.load(w), tl.load(w + 64), tl.load(w + 128), tl.load(w + 192)
    total = tl.zeros([warps * 8, 64], tl.float32)
    square = tl.zeros([warps * 8, 64], tl.float32)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=stages):
        row, start, there, _ = piece_of(tile, rows, columns, BM, 1)
        acc = tl.zeros([BM, 64], tl.float32)
        for line in tl.static_range(4):
            a = line_of(folded, start, line, columns, there, BM)
            acc = tl.dot(a, w[line], acc, input_precision="ieee" if exact else "tf32")
        rounded = acc.to(y.dtype.element_ty)
        tl.store(y + row * 64 + m[:, None] * 64 + n[None, :], rounded, mask=there)
        away = tl.where(there, rounded.to(tl.float32) - near[None, :], 0.0)
        total += striped(away, warps)
        square += striped(away * away, warps)
    tl.store(totals + tl.program_id(0) * 64 + n, tl.sum(total, axis=0))
    tl.store(squares + tl.program_id(0) * 64 + n, tl.sum(square, axis=0))


# Pixels of a row, warps, stages.
TILES = [(64, 4, 2), (64, 4, 1), (128, 4, 1), (128, 8, 2)]


def stem(folded, weight, norm):
    images, rows, columns = folded.shape[0], folded.shape[1] - 3, folded.shape[2] - 3
    count = images * rows * columns
    y = torch.empty(count, WIDTH, device=folded.device, dtype=folded.dtype)

    def launch(tile):
        tall, warps, stages = tile
        tiles = images * rows * -(-columns // tall)

        def arguments(strips):
            partial = torch.empty(2, strips, WIDTH, device=folded.device, dtype=torch.float32)
            return partial, (
                folded, weight, y, norm.mean, *partial, tiles, rows, columns,
                folded.dtype == torch.float32, tall, warps, stages,
            )  # fmt: skip

        return walk(_stem, arguments, warps, tiles, 1, folded.device)

    partial = launch(tuning.tuner.choose("stem", (count, folded.dtype), TILES, launch, folded.device))
    if y.dtype == torch.float32:
        return norms.statistics(y, norm)  # the running mean may lie far away, and float32 would show it
    return norms.finish_statistics(y, partial, norm, pivot=norm.mean)
