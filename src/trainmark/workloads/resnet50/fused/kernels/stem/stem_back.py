"""From the gradient of what the stem's pooling chose to that of the stem's weights."""

import torch
import triton
import triton.language as tl

from trainmark.workloads.common import kernel_tuning as tuning
from trainmark.workloads.resnet50.fused.kernels.persistent import walk
from trainmark.workloads.resnet50.fused.kernels.stem.pool import pool_back
from trainmark.workloads.resnet50.fused.kernels.stem.stem import CELLS, DEPTH, LINE, WIDTH, line_of, piece_of


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
        row, start, there, below = piece_of(tile, rows, columns, BM, 2)
        place = gradient + row * 64 + m[:, None] * 64 + n[None, :]
        upper = tl.trans(tl.load(place, mask=there, other=0.0))
        lower = tl.trans(tl.load(place + columns * 64, mask=below, other=0.0))
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
    place = partial + tl.program_id(0) * 64 * 256 + n[:, None] * 256 + n[None, :]
    tl.store(place, one)
    tl.store(place + 64, two)
    tl.store(place + 128, three)
    tl.store(place + 192, four)


# Pixels of two rows, warps, stages.
TILES = [(64, 4, 2), (64, 4, 3), (64, 4, 1), (64, 8, 2)]


def stem_back(s, which, folded, shape):
    """The weights' gradient as (outputs, 4, 4, 16); `s.upper` has a row for each pixel that was chosen."""
    gradient = pool_back(s, which, shape)
    images, rows, columns = shape

    def launch(tile):
        deep, warps, stages = tile
        tiles = images * -(-rows // 2) * -(-columns // deep)

        def arguments(strips):
            partial = torch.empty(strips, WIDTH, CELLS * LINE, device=folded.device, dtype=torch.float32)
            exact = folded.dtype == torch.float32
            return partial, (gradient, folded, partial, tiles, rows, columns, exact, deep, stages)

        return walk(_weight_gradient, arguments, warps, tiles, 1, folded.device).sum(0)

    key = *shape, folded.dtype
    tile = tuning.tuner.choose("stem_weight_gradient", key, TILES, launch, folded.device)
    return launch(tile).view(WIDTH, CELLS, CELLS, DEPTH)
