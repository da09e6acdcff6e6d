"""From the gradient of what the stem's pooling chose to that of the stem's weights."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.resnet50.fused.kernels import tuning
from trainmark.workloads.resnet50.fused.kernels.pool import pool_back, sent_by, windows
from trainmark.workloads.resnet50.fused.kernels.stem import CELLS, DEPTH, LINE, WIDTH, line_of, piece_of
from trainmark.workloads.resnet50.fused.kernels.walking import walk


@triton.jit
def _added(
    one, two, three, four, upper, lower, folded, start, columns, there, below,
    exact: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """The sums of the weights' four lines with what two rows of a picture add to them."""
    precision: tl.constexpr = "ieee" if exact else "tf32"
    upper, lower = tl.trans(upper), tl.trans(lower)
    a = line_of(folded, start, 0, columns, there, BM)
    one = tl.dot(upper, a, one, input_precision=precision)
    a = line_of(folded, start, 1, columns, there, BM)
    one = tl.dot(lower, a, one, input_precision=precision)
    two = tl.dot(upper, a, two, input_precision=precision)
    a = line_of(folded, start, 2, columns, there, BM)
    two = tl.dot(lower, a, two, input_precision=precision)
    three = tl.dot(upper, a, three, input_precision=precision)
    a = line_of(folded, start, 3, columns, there, BM)
    three = tl.dot(lower, a, three, input_precision=precision)
    four = tl.dot(upper, a, four, input_precision=precision)
    a = line_of(folded, start, 4, columns, below, BM)
    four = tl.dot(lower, a, four, input_precision=precision)
    return one, two, three, four


@triton.jit
def _stored(partial, one, two, three, four):
    n = tl.arange(0, 64)
    place = partial + tl.program_id(0) * 64 * 256 + n[:, None] * 256 + n[None, :]
    tl.store(place, one)
    tl.store(place + 64, two)
    tl.store(place + 128, three)
    tl.store(place + 192, four)


@triton.jit
def _weight_gradient(
    gradient, folded, partial, tiles, rows, columns, exact: tl.constexpr, BM: tl.constexpr,
    stages: tl.constexpr,
):  # fmt: skip
    n = tl.arange(0, 64)
    m = tl.arange(0, BM)
    one = tl.zeros([64, 64], tl.float32)
    two = tl.zeros([64, 64], tl.float32)
    three = tl.zeros([64, 64], tl.float32)
    four = tl.zeros([64, 64], tl.float32)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=stages):
        _, _, _, row, start, there, below = piece_of(tile, rows, columns, BM, 2)
        place = gradient + row * 64 + m[:, None] * 64 + n[None, :]
        upper = tl.load(place, mask=there, other=0.0)
        lower = tl.load(place + columns * 64, mask=below, other=0.0)
        one, two, three, four = _added(
            one, two, three, four, upper, lower, folded, start, columns, there, below, exact, BM
        )
    _stored(partial, one, two, three, four)


@triton.jit
def _stem_back(
    upper, which, raw, folded, by, own, rest, partial, tiles, rows, columns, half_rows, half_columns,
    exact: tl.constexpr, BM: tl.constexpr, stages: tl.constexpr,
):  # fmt: skip
    n = tl.arange(0, 64)
    m = tl.arange(0, BM)
    of_upper, of_raw, constant = (
        tl.load(by + n)[None, :],
        tl.load(own + n)[None, :],
        tl.load(rest + n)[None, :],
    )
    one = tl.zeros([64, 64], tl.float32)
    two = tl.zeros([64, 64], tl.float32)
    three = tl.zeros([64, 64], tl.float32)
    four = tl.zeros([64, 64], tl.float32)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=stages):
        image, down, right, row, start, there, below = piece_of(tile, rows, columns, BM, 2)
        high = image * half_rows + down // 2
        j = right // 2 + tl.arange(0, BM // 2)
        here = windows(upper, which, high, j, n, half_columns, j < half_columns)
        next_there = (j < half_columns) & (down // 2 + 1 + j * 0 < half_rows)
        after = windows(upper, which, high + 1, j, n, half_columns, next_there)
        first = _interleaved(sent_by(here, 3), BM)
        second = _interleaved(sent_by(here, 6), BM) + _interleaved(sent_by(after, 0), BM)
        place = raw + row * 64 + m[:, None] * 64 + n[None, :]
        x = tl.load(place, mask=there, other=0.0).to(tl.float32)
        first = tl.where(there, of_upper * first + of_raw * x + constant, 0.0)
        x = tl.load(place + columns * 64, mask=below, other=0.0).to(tl.float32)
        second = tl.where(below, of_upper * second + of_raw * x + constant, 0.0)
        kind = folded.dtype.element_ty
        one, two, three, four = _added(
            one, two, three, four, first.to(kind), second.to(kind),
            folded, start, columns, there, below, exact, BM,
        )  # fmt: skip
    _stored(partial, one, two, three, four)


@triton.jit
def _interleaved(pixels, BM: tl.constexpr):
    """Even and odd pixels of a row in the order in which they stand there."""
    return tl.reshape(tl.permute(tl.join(pixels[0], pixels[1]), (0, 2, 1)), [BM, 64])


TOGETHER, APART = "together", "apart"
# Pixels of a row, warps, stages.
TILES = [(64, 4, 2), (64, 4, 3), (64, 4, 1), (64, 8, 2)]
TOGETHER_TILES = [(64, 8, 1), (64, 4, 1), (64, 8, 2), (32, 4, 1)]


def stem_back(s, which, folded, shape):
    """The weights' gradient as (outputs, 4, 4, 16); `s.upper` has a row for each pixel that was chosen."""
    key = *shape, folded.dtype

    def launch(way):
        return _together(s, which, folded, shape) if way == TOGETHER else _apart(s, which, folded, shape)

    way = tuning.tuner.choose("stem_back_way", key, [TOGETHER, APART], launch, folded.device)
    return launch(way).view(WIDTH, CELLS, CELLS, DEPTH)


def _together(s, which, folded, shape):
    """What the stem gave has its gradient nowhere but on the way."""
    halves = (shape[1] + 1) // 2, (shape[2] + 1) // 2
    read = s.upper, which, s.norm.raw, folded, s.by, s.own, s.rest
    return _walked("stem_back", _stem_back, TOGETHER_TILES, read, folded, shape, halves)


def _apart(s, which, folded, shape):
    gradient = pool_back(s, which, shape)
    return _walked("stem_weight_gradient", _weight_gradient, TILES, (gradient, folded), folded, shape)


def _walked(name, kernel, tried, read, folded, shape, halves=()):
    images, rows, columns = shape

    def launch(tile):
        deep, warps, stages = tile
        tiles = images * -(-rows // 2) * -(-columns // deep)

        def arguments(strips):
            partial = torch.empty(strips, WIDTH, CELLS * LINE, device=folded.device, dtype=torch.float32)
            exact = folded.dtype == torch.float32
            return partial, (*read, partial, tiles, rows, columns, *halves, exact, deep, stages)

        return walk(kernel, arguments, warps, tiles, 1, folded.device).sum(0)

    return launch(tuning.tuner.choose(name, (*shape, folded.dtype), tried, launch, folded.device))
