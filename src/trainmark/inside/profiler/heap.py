"""Pages for a profiler's records, so that they take none from the memory that the training goes on to use."""

import contextlib
import ctypes

M_TRIM_THRESHOLD = -1
RESET_PEAK = "5"  # sets VmHWM in /proc/self/status to what is resident now
BLOCK_BYTES = 64 << 10  # below the size from which glibc maps a block by itself
MOST_BYTES = 192 << 20
MOST_OF_AVAILABLE, MOST_OF_RESIDENT = 1 / 16, 1 / 4


def reserve():
    """Have glibc's heap own pages that nothing uses yet, and keep them; elsewhere nothing happens.

    Records lie between tensors that come and go. Where these no longer find the room that they had, each step
    touches new pages, a microsecond each: up to a tenth of a step.
    """
    with contextlib.suppress(AttributeError, OSError, KeyError):
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
        if not libc.mallopt(M_TRIM_THRESHOLD, -1):
            return
        blocks = [libc.malloc(BLOCK_BYTES) for _ in range(int(_spare_bytes() // BLOCK_BYTES))]
        for block in filter(None, blocks):
            ctypes.memset(block, 1, BLOCK_BYTES)
        for block in blocks:
            libc.free(block)


def give_back():
    """Return what `reserve` took and whatever else is free, and look for the peak of the process anew."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write(RESET_PEAK)


def _spare_bytes():
    available = MOST_OF_AVAILABLE * kibibytes("/proc/meminfo")["MemAvailable"] * 1024
    resident = MOST_OF_RESIDENT * kibibytes("/proc/self/status")["VmRSS"] * 1024
    return min(MOST_BYTES, available, resident)


def kibibytes(path):
    """Return what a file such as /proc/meminfo counts in kB, by its names."""
    with open(path) as file:
        words = [line.split() for line in file]
    return {line[0].rstrip(":"): int(line[1]) for line in words if line[2:] == ["kB"]}
