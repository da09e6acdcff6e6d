"""Programs that walk over tiles and keep their sums to the end: as many as the device runs at once."""

import functools

import torch

WARP = 32
ELEMENTS = 4096  # of a tile
WIDEST = 128  # channels of a tile
PROGRAMS = 4  # a multiprocessor, where each walks over many tiles
_beside = {}


@functools.lru_cache(maxsize=None)
def multiprocessors(device):
    if device.type != "cuda":
        return 2
    return torch.cuda.get_device_properties(device).multi_processor_count


def walk(kernel, arguments, warps, tiles, pieces, device):
    """Launches a kernel whose programs share the tiles of every piece of its result.

    `arguments(strips)` gives the sums, with a row for each program of a piece, and all that the kernel takes.
    """
    strips = max(1, min(_programs(kernel, arguments, warps, device) // pieces, tiles))
    sums, given = arguments(strips)
    kernel[(strips * pieces,)](*given, num_warps=warps)
    return sums


def _programs(kernel, arguments, warps, device):
    if device.type != "cuda":
        return 8
    _, given = arguments(0)
    numbers = tuple(each for each in given if not isinstance(each, torch.Tensor))
    key = kernel, device, warps, given[0].dtype, numbers
    if key not in _beside:
        compiled = kernel.warmup(*given, grid=(1,), num_warps=warps)
        compiled._init_handles()  # which the first launch would do: registers are known from then on
        _beside[key] = _side_by_side(compiled, warps, torch.cuda.get_device_properties(device))
    return _beside[key] * multiprocessors(device)


def _side_by_side(compiled, warps, device):
    """Programs for which one multiprocessor has registers, shared memory and threads."""
    registers = -(-compiled.n_regs // 8) * 8 * WARP * warps  # a thread gets them by eights
    shared = compiled.metadata.shared + 1024  # which the system takes for each program
    room = (
        device.regs_per_multiprocessor // registers,
        device.shared_memory_per_multiprocessor // shared,
        device.max_threads_per_multi_processor // (WARP * warps),
    )
    return max(1, min(room))


def tile_shape(channels):
    across = min(channels, WIDEST)
    return ELEMENTS // across, across


def strips(rows, tall, across, channels, device):
    """How many programs share the rows, where each keeps its sums to the end."""
    most = multiprocessors(device) * PROGRAMS // (channels // across)
    return max(1, min(most, -(-rows // tall)))
