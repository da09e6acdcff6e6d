"""What kernels do to a tile on its way in and out; each has its reference in `fused/reference_ops.py`."""

import triton
import triton.language as tl


@triton.jit
def wide_row(row):
    """Rows are counted in 32 bits, since dividing longer numbers is dear; where they lie may need 64."""
    return row.to(tl.int64)[:, None]


@triton.jit
def from_the_end(tile, rows, BM: tl.constexpr):
    """What was stored last is still in the cache: who reads a matrix at once begins there."""
    return tl.cdiv(rows, BM) - 1 - tile


@triton.jit
def tile_of(tile, columns, rows, width: tl.constexpr, BM: tl.constexpr):
    """Where the elements of a tile lie in a matrix, and which of its rows are there."""
    m = tl.arange(0, BM)
    start = tile * tl.full([], BM, tl.int64)
    return start * width + m[:, None] * width + columns[None, :], (start + m < rows)[:, None]


@triton.jit
def normed(raw, factor, offset):
    return raw.to(tl.float32) * factor[None, :] + offset[None, :]


@triton.jit
def batch_norm_grad(upper, raw, by, own, rest, factor, offset, rectify: tl.constexpr):
    """The gradient in front of a batch norm from the one behind it."""
    upper = upper.to(tl.float32)
    if rectify:
        upper = tl.where(normed(raw, factor, offset) > 0, upper, 0.0)
    return by[None, :] * upper + own[None, :] * raw.to(tl.float32) + rest[None, :]


@triton.jit
def striped(tile, warps: tl.constexpr):
    """Adds up those rows of a product's tile that one thread holds: sums of columns then wait for the end.

    The accumulators of the matrix units give a thread rows r and r + 8 of the 16 rows of its warp, and again
    of the rows that lie 16 · warps further on.
    """
    rows: tl.constexpr = tile.shape[0]
    columns: tl.constexpr = tile.shape[1]
    again: tl.constexpr = rows // (16 * warps)
    tile = tl.sum(tl.reshape(tile, [again * warps, 2, 8, columns]), axis=1)
    return tl.sum(tl.reshape(tile, [again, warps * 8, columns]), axis=0)
