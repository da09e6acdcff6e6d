"""The stem: a 7×7 convolution of three channels and stride 2, as 4×4 over cells of 2×2 pixels."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import norms, tuning
from trainmark.workloads.resnet50.fused.kernels.reading import striped, wide_row
from trainmark.workloads.resnet50.fused.kernels.walking import walk

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
def _piece(tile, rows, columns, BM: tl.constexpr):
    """A tile is a piece of a picture's row: its first output, its first cell, what of it is there."""
    pieces = tl.cdiv(columns, BM)
    line = tile // pieces
    right = tile % pieces * BM
    cell = (line // rows * (rows + 3) + line % rows) * (columns + 3) + right
    there = (right + tl.arange(0, BM) < columns)[:, None]
    return (line * columns + right).to(tl.int64), cell.to(tl.int64) * 16, there


@triton.jit
def _cells(start, line, columns, BM: tl.constexpr):
    """Where four neighbouring cells of every output lie, in this line of them."""
    first = start + line * (columns + 3) * 16
    return first + tl.arange(0, BM)[:, None] * 16 + tl.arange(0, 64)[None, :]


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
        row, start, there = _piece(tile, rows, columns, BM)
        acc = tl.zeros([BM, 64], tl.float32)
        for line in tl.static_range(4):
            a = tl.load(folded + _cells(start, line, columns, BM), mask=there, other=0.0)
            acc = tl.dot(a, w[line], acc, input_precision="ieee" if exact else "tf32")
        rounded = acc.to(y.dtype.element_ty)
        tl.store(y + row * 64 + m[:, None] * 64 + n[None, :], rounded, mask=there)
        away = tl.where(there, rounded.to(tl.float32) - near[None, :], 0.0)
        total += striped(away, warps)
        square += striped(away * away, warps)
    tl.store(totals + tl.program_id(0) * 64 + n, tl.sum(total, axis=0))
    tl.store(squares + tl.program_id(0) * 64 + n, tl.sum(square, axis=0))


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

    tried = [(64, 4, 2), (64, 4, 1), (128, 4, 1), (128, 8, 2)]
    partial = launch(tuning.tuner.choose("stem", (count, folded.dtype), tried, launch, folded.device))
    if y.dtype == torch.float32:
        return norms.statistics(y, norm)  # the running mean may lie far away, and float32 would show it
    return norms.finish_statistics(y, partial, norm, pivot=norm.mean)


@triton.jit
def _stem_weight_gradient(
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
        row, start, there = _piece(tile, rows, columns, BM)
        g = tl.load(gradient + row * 64 + m[:, None] * 64 + n[None, :], mask=there, other=0.0)
        g = tl.trans(g)
        a = tl.load(folded + _cells(start, 0, columns, BM), mask=there, other=0.0)
        one = tl.dot(g, a, one, input_precision=precision)
        a = tl.load(folded + _cells(start, 1, columns, BM), mask=there, other=0.0)
        two = tl.dot(g, a, two, input_precision=precision)
        a = tl.load(folded + _cells(start, 2, columns, BM), mask=there, other=0.0)
        three = tl.dot(g, a, three, input_precision=precision)
        a = tl.load(folded + _cells(start, 3, columns, BM), mask=there, other=0.0)
        four = tl.dot(g, a, four, input_precision=precision)
    place = partial + tl.program_id(0) * 64 * 256 + n[:, None] * 256 + tl.arange(0, 64)[None, :]
    tl.store(place, one)
    tl.store(place + 64, two)
    tl.store(place + 128, three)
    tl.store(place + 192, four)


def stem_weight_gradient(gradient, folded):
    """As (outputs, 4, 4, 16)."""
    images, rows, columns = folded.shape[0], folded.shape[1] - 3, folded.shape[2] - 3
    count = images * rows * columns

    def launch(tile):
        deep, warps, stages = tile
        tiles = images * rows * -(-columns // deep)

        def arguments(strips):
            partial = torch.empty(strips, WIDTH, CELLS * LINE, device=folded.device, dtype=torch.float32)
            exact = folded.dtype == torch.float32
            return partial, (gradient, folded, partial, tiles, rows, columns, exact, deep, stages)

        return walk(_stem_weight_gradient, arguments, warps, tiles, 1, folded.device).sum(0)

    tried = [(64, 4, 2), (64, 4, 3), (64, 4, 1)]
    key = count, folded.dtype
    tiles = tuning.tuner.choose("stem_weight_gradient", key, tried, launch, folded.device)
    return launch(tiles).view(WIDTH, CELLS, CELLS, DEPTH)
