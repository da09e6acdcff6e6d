"""The stem: a 7×7 convolution of stride 2, as 4×4 over cells of 2×2 pixels, forward and wgrad."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused import batch_norm
from trainmark.workloads.resnet50.fused.pooling import pool_back
from trainmark.workloads.resnet50.fused.tiles import launch_persistent, row_int64, sum_thread_rows

STEM_WIDTH, CELLS, DEPTH = 64, 4, 16  # outputs; cells of the kernel; channels of a cell
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
    place = row_int64(image) * by_image + (channel % 3)[None, :] * by_channel
    place += down * by_row + right * by_column
    pixel = tl.load(images + place, mask=inside & (at < count)[:, None], other=0.0)
    target = row_int64(at) * 16 + channel[None, :]
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
def tile_address(tile, rows, columns, BM: tl.constexpr, LINES: tl.constexpr):
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
def cell_line(folded, start, line, columns, there, BM: tl.constexpr):
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
        row, start, there, _ = tile_address(tile, rows, columns, BM, 1)
        acc = tl.zeros([BM, 64], tl.float32)
        for line in tl.static_range(4):
            a = cell_line(folded, start, line, columns, there, BM)
            acc = tl.dot(a, w[line], acc, input_precision="ieee" if exact else "tf32")
        rounded = acc.to(y.dtype.element_ty)
        tl.store(y + row * 64 + m[:, None] * 64 + n[None, :], rounded, mask=there)
        away = tl.where(there, rounded.to(tl.float32) - near[None, :], 0.0)
        total += sum_thread_rows(away, warps)
        square += sum_thread_rows(away * away, warps)
    tl.store(totals + tl.program_id(0) * 64 + n, tl.sum(total, axis=0))
    tl.store(squares + tl.program_id(0) * 64 + n, tl.sum(square, axis=0))


# Pixels of a row, warps, stages.
STEM_TILES = [(64, 4, 2), (64, 4, 1), (128, 4, 1), (128, 8, 2)]


def stem(folded, weight, norm):
    images, rows, columns = folded.shape[0], folded.shape[1] - 3, folded.shape[2] - 3
    count = images * rows * columns
    y = torch.empty(count, STEM_WIDTH, device=folded.device, dtype=folded.dtype)

    def launch(tile):
        tall, warps, stages = tile
        tiles = images * rows * -(-columns // tall)

        def arguments(strips):
            partial = torch.empty(2, strips, STEM_WIDTH, device=folded.device, dtype=torch.float32)
            return partial, (
                folded, weight, y, norm.mean, *partial, tiles, rows, columns,
                folded.dtype == torch.float32, tall, warps, stages,
            )  # fmt: skip

        return launch_persistent(_stem, arguments, warps, tiles, 1, folded.device)

    partial = launch(tuning.tuner.choose("stem", (count, folded.dtype), STEM_TILES, launch, folded.device))
    if y.dtype == torch.float32:
        return batch_norm.statistics(y, norm)  # the running mean may lie far away, and float32 would show it
    return batch_norm.finish_statistics(y, partial, norm, pivot=norm.mean)


@triton.jit
def _weight_gradient(
    gradient, folded, partial, tiles, rows, columns,
    exact: tl.constexpr, BM: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    precision: tl.constexpr = "ieee" if exact else "tf32"
    n = tl.arange(0, 64)
    m = tl.arange(0, BM)
    one = tl.zeros([64, 64], tl.float32)
    two = tl.zeros([64, 64], tl.float32)
    three = tl.zeros([64, 64], tl.float32)
    four = tl.zeros([64, 64], tl.float32)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=stages):
        row, start, there, below = tile_address(tile, rows, columns, BM, 2)
        place = gradient + row * 64 + m[:, None] * 64 + n[None, :]
        upper = tl.trans(tl.load(place, mask=there, other=0.0))
        lower = tl.trans(tl.load(place + columns * 64, mask=below, other=0.0))
        a = cell_line(folded, start, 0, columns, there, BM)
        one = tl.dot(upper, a, one, input_precision=precision)
        a = cell_line(folded, start, 1, columns, there, BM)
        one = tl.dot(lower, a, one, input_precision=precision)
        two = tl.dot(upper, a, two, input_precision=precision)
        a = cell_line(folded, start, 2, columns, there, BM)
        two = tl.dot(lower, a, two, input_precision=precision)
        three = tl.dot(upper, a, three, input_precision=precision)
        a = cell_line(folded, start, 3, columns, there, BM)
        three = tl.dot(lower, a, three, input_precision=precision)
        four = tl.dot(upper, a, four, input_precision=precision)
        a = cell_line(folded, start, 4, columns, below, BM)
        four = tl.dot(lower, a, four, input_precision=precision)
    place = partial + tl.program_id(0) * 64 * 256 + n[:, None] * 256 + n[None, :]
    tl.store(place, one)
    tl.store(place + 64, two)
    tl.store(place + 128, three)
    tl.store(place + 192, four)


# Pixels of two rows, warps, stages.
WGRAD_TILES = [(64, 4, 2), (64, 4, 3), (64, 4, 1), (64, 8, 2)]


def stem_back(s, which, folded, shape):
    """The weights' gradient as (outputs, 4, 4, 16); `s.upper` has a row for each pixel that was chosen."""
    gradient = pool_back(s, which, shape)
    images, rows, columns = shape

    def launch(tile):
        deep, warps, stages = tile
        tiles = images * -(-rows // 2) * -(-columns // deep)

        def arguments(strips):
            partial = torch.empty(strips, STEM_WIDTH, CELLS * LINE, device=folded.device, dtype=torch.float32)
            exact = folded.dtype == torch.float32
            return partial, (gradient, folded, partial, tiles, rows, columns, exact, deep, stages)

        return launch_persistent(_weight_gradient, arguments, warps, tiles, 1, folded.device).sum(0)

    key = *shape, folded.dtype
    tile = tuning.tuner.choose("stem_weight_gradient", key, WGRAD_TILES, launch, folded.device)
    return launch(tile).view(STEM_WIDTH, CELLS, CELLS, DEPTH)
