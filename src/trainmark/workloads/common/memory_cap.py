"""Less memory than there is, so that a large device stands in for a smaller one.

On a GPU the rest of the card is taken away before the framework comes: its context, its libraries and its
allocator then share what is left, as they would on the smaller card, and it needs no word about it. On the
CPU the process is ended once it has held more than the cap.
"""

import atexit
import ctypes
import os
import resource
import threading
import time

# The driver keeps a part of every card: V100s sold with 16 and 32 GB list 16,130 and 32,480 MiB.
DRIVER_KEEPS = 256 << 20
DRIVER = "libcuda.so.1"
NO_ROOM = 2  # CUDA_ERROR_OUT_OF_MEMORY
# JAX alone takes a share of the whole card, whatever is free there; newer versions know both names.
JAX_SHARE = "XLA_PYTHON_CLIENT_MEM_FRACTION"
JAX_NEW_NAME = "XLA_CLIENT_MEM_FRACTION"
JAX_DEFAULT = 0.75
# In which a process does not get far beyond the cap.
LOOK_SECONDS = 0.02


def on_host(opt):
    """On the CPU: ends the process, with a word that tells why, once it has held more than the cap.

    The kernel's own limits would be harder, but few libraries survive them: under RLIMIT_DATA PyTorch's say
    "could not create a primitive" or die of SIGSEGV, as MXNet's do, which says nothing of memory. What is
    compared here is the high-water mark that the kernel keeps: no peak is too short to be seen.
    """
    if opt.memory_cap is None or opt.device != "cpu":
        return
    threading.Thread(target=_watch, args=(opt.memory_cap,), daemon=True).start()
    atexit.register(_end_above, opt.memory_cap)


def on_card(opt):
    """On a GPU: what a card of the cap's size does not have is taken for as long as the process lives.

    Before the framework first touches the card: some take all that is free there when they do.
    """
    if opt.memory_cap is None or opt.device != "cuda":
        return
    total = _take(opt.local_rank, lambda total: taken(opt.memory_cap, total))
    name = JAX_NEW_NAME if JAX_NEW_NAME in os.environ else JAX_SHARE
    share = float(os.environ.get(name, JAX_DEFAULT))
    os.environ[name] = str(share * (1 - taken(opt.memory_cap, total) / total))


def usable(cap):
    """Bytes that programs have on a card sold with `cap`."""
    return cap - DRIVER_KEEPS


def taken(cap, total):
    """Bytes to take from a card on which programs have `total`."""
    return max(0, total - usable(cap))


def _take(ordinal, share):
    """Allots `share(total)` bytes of the card and never frees them; gives the card's total."""
    driver = ctypes.CDLL(DRIVER)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    free, total, block = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()

    def call(name, *arguments):
        code = getattr(driver, name)(*arguments)
        if code:
            why = "the card has too little left" if code == NO_ROOM else "CUDA error {}".format(code)
            raise RuntimeError("the memory cannot be capped: {} in {}".format(why, name))

    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), ordinal)
    # The context that the framework will use too: what it costs is counted once, and as the framework's.
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxPushCurrent_v2", context)
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    if share(total.value):
        call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(share(total.value)))
    call("cuCtxPopCurrent_v2", ctypes.byref(context))
    return total.value


def _watch(cap):
    while True:
        _end_above(cap)
        time.sleep(LOOK_SECONDS)


def _end_above(cap):
    peak = process_memory_peak()
    if peak > cap:
        message = "MemoryError: {} bytes were in use, more than the memory cap of {}\n".format(peak, cap)
        os.write(2, message.encode())
        os._exit(1)


def process_memory_peak():
    """Return the peak resident bytes of this process: what a step on the CPU reports as its memory."""
    try:
        with open("/proc/self/status", "rb") as file:
            return int(file.read().partition(b"VmHWM:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        # Where there is no such file: this one also remembers the process that started us.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
