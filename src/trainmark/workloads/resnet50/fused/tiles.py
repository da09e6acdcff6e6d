"""Tiles: what kernels do to one on its way in and out, and persistent programs that walk over many.

As many programs run as the device holds at once; each keeps its sums to the end. What is done to a tile
has its reference in `reference_ops.py`.
"""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def row_int64(row):
    """Rows are counted in 32 bits, since dividing longer numbers is dear; where they lie may need 64."""
    return row.to(tl.int64)[:, None]


@triton.jit
def reversed_tile(tile, rows, BM: tl.constexpr):
    """What was stored last is still in the cache: who reads a matrix at once begins there."""
    return tl.cdiv(rows, BM) - 1 - tile


@triton.jit
def tile_of(tile, columns, rows, width: tl.constexpr, BM: tl.constexpr):
    """Where the elements of a tile lie in a matrix, and which of its rows are there."""
    m = tl.arange(0, BM)
    start = tile * tl.full([], BM, tl.int64)
    return start * width + m[:, None] * width + columns[None, :], (start + m < rows)[:, None]


@triton.jit
def scale_shift(raw, factor, offset):
    return raw.to(tl.float32) * factor[None, :] + offset[None, :]


@triton.jit
def batch_norm_grad(upper, raw, by, own, rest, factor, offset, rectify: tl.constexpr):
    """The gradient in front of a batch norm from the one behind it."""
    upper = upper.to(tl.float32)
    if rectify:
        upper = tl.where(scale_shift(raw, factor, offset) > 0, upper, 0.0)
    return by[None, :] * upper + own[None, :] * raw.to(tl.float32) + rest[None, :]


@triton.jit
def sum_thread_rows(tile, warps: tl.constexpr):
    """Adds up those rows of a product's tile that one thread holds: sums of columns then wait for the end.

    The accumulators of the matrix units give a thread rows r and r + 8 of the 16 rows of its warp, and again
    of the rows that lie 16 · warps further on.
    """
    rows: tl.constexpr = tile.shape[0]
    columns: tl.constexpr = tile.shape[1]
    again: tl.constexpr = rows // (16 * warps)
    tile = tl.sum(tl.reshape(tile, [again * warps, 2, 8, columns]), axis=1)
    return tl.sum(tl.reshape(tile, [again, warps * 8, columns]), axis=0)


WARP_THREADS = 32
TILE_ELEMENTS = 4096  # of a tile
WIDEST_TILE = 128  # channels of a tile
PROGRAMS_PER_MULTIPROCESSOR = 4  # a multiprocessor, where each walks over many tiles
_occupancy = {}


@functools.lru_cache(maxsize=None)
def multiprocessors(device):
    if device.type != "cuda":
        return 2
    return torch.cuda.get_device_properties(device).multi_processor_count


def launch_persistent(kernel, arguments, warps, tiles, pieces, device):
    """Launches a kernel whose programs share the tiles of every piece of its result.

    `arguments(strips)` gives the sums, with a row for each program of a piece, and all that the kernel takes.
    """
    strips = max(1, min(_resident_programs(kernel, arguments, warps, device) // pieces, tiles))
    sums, given = arguments(strips)
    kernel[(strips * pieces,)](*given, num_warps=warps)
    return sums


def _resident_programs(kernel, arguments, warps, device):
    if device.type != "cuda":
        return 8
    _, given = arguments(0)
    numbers = tuple(each for each in given if not isinstance(each, torch.Tensor))
    key = kernel, device, warps, given[0].dtype, numbers
    if key not in _occupancy:
        compiled = kernel.warmup(*given, grid=(1,), num_warps=warps)
        compiled._init_handles()  # which the first launch would do: registers are known from then on
        _occupancy[key] = _programs_per_multiprocessor(
            compiled, warps, torch.cuda.get_device_properties(device)
        )
    return _occupancy[key] * multiprocessors(device)


def _programs_per_multiprocessor(compiled, warps, device):
    """Programs for which one multiprocessor has registers, shared memory and threads."""
    registers = -(-compiled.n_regs // 8) * 8 * WARP_THREADS * warps  # a thread gets them by eights
    shared = compiled.metadata.shared + 1024  # which the system takes for each program
    room = (
        device.regs_per_multiprocessor // registers,
        device.shared_memory_per_multiprocessor // shared,
        device.max_threads_per_multi_processor // (WARP_THREADS * warps),
    )
    return max(1, min(room))


def tile_shape(channels):
    across = min(channels, WIDEST_TILE)
    return TILE_ELEMENTS // across, across


def program_count(rows, tall, across, channels, device):
    """How many programs share the rows, where each keeps its sums to the end."""
    most = multiprocessors(device) * PROGRAMS_PER_MULTIPROCESSOR // (channels // across)
    return max(1, min(most, -(-rows // tall)))
