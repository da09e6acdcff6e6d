"""The two ends of the network: the stem with its max-pooling, and global average pooling backward.

The 7×7 convolution of stride 2 is 4×4 over cells of 2×2 pixels. Max-pooling has batch norm on its way in, and
stores which of nine was largest in a byte.
"""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused import batch_norm
from trainmark.workloads.resnet50.fused.tiles import (
    launch_persistent,
    program_count,
    row_int64,
    sum_thread_rows,
    tile_of,
    tile_shape,
)

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
    out = torch.empty(lines * half_columns, STEM_WIDTH, device=x.raw.device, dtype=x.raw.dtype)
    which = torch.empty(lines * half_columns, STEM_WIDTH, device=x.raw.device, dtype=torch.uint8)

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
def _pool_backward(
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


def pool_backward(s, which, shape):
    """The gradient of what was pooled; `s.upper` has a row for each chosen."""
    images, rows, columns = shape
    half_rows, half_columns = (rows + 1) // 2, (columns + 1) // 2
    out = torch.empty_like(s.norm.raw)

    def launch(tile):
        tall, warps = tile
        _pool_backward[(images * rows, -(-half_columns // tall))](
            s.upper, which, s.norm.raw, out, s.by, s.own, s.rest, rows, columns,
            half_rows, half_columns, tall, num_warps=warps,
        )  # fmt: skip

    launch(tuning.tuner.choose("pool_backward", (*shape, out.dtype), POOL_TILES, launch, out.device))
    return out


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


def stem_backward(s, which, folded, shape):
    """The weights' gradient as (outputs, 4, 4, 16); `s.upper` has a row for each pixel that was chosen."""
    gradient = pool_backward(s, which, shape)
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


@triton.jit
def _head_backward(
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


def head_backward(gradient, onto, images):
    """From the gradient of every image's mean to that of the last block, and its sums."""
    rows, width = onto.value.shape
    tall, across = tile_shape(width)
    count = program_count(rows, tall, across, width, gradient.device)
    out = torch.empty_like(onto.value)
    totals = torch.empty(count, width, device=gradient.device, dtype=torch.float32)
    _head_backward[(count, width // across)](
        gradient, onto.value, out, totals, rows, rows // images, width, tall, across,
    )  # fmt: skip
    return out, totals
