"""What the device does at best, measured at the end of a profiled program: products by precision, and copies.

A floor is believable only from the device that the step ran on, in the state that the step left it in.
"""

import contextlib
from importlib import import_module

from trainmark import probe

torch = import_module("torch")

REPEATS = 3
SMALLEST_SIDE = 256
LONG_ENOUGH = 0.05  # seconds of one product; a CPU without such a unit would take minutes for the largest
SIDE = {"cuda": 8192, "cpu": 1024}
COPIED_NUMBERS = {"cuda": 2**28, "cpu": 2**25}
COPIES = {"cuda": 4, "cpu": 1}
PRODUCTS = {"cuda": 8, "cpu": 2}


def measure(device):
    """Return FLOP/s of a large matrix product by precision, and bytes/s of a copy (`bandwidth`).

    A precision for which the device has no memory or no kernel is left out.
    """
    kind = torch.device(device).type
    peaks = {}
    for name, dtype, tf32 in precisions(kind):
        with contextlib.suppress(RuntimeError):  # out of memory is one too
            peaks[name] = product_flops(device, kind, dtype, tf32)
    with contextlib.suppress(RuntimeError):
        peaks["bandwidth"] = copy_bandwidth(device, kind)
    return peaks


def precisions(kind):
    if kind == "cpu":
        single = [("fp32", torch.float32, False)]
        # Without bf16 in the processor PyTorch would turn oneDNN off for good, and take minutes.
        return single + ([("bf16", torch.bfloat16, False)] if _has_bf16() else [])
    halves = [("bf16", torch.bfloat16, False), ("amp", torch.float16, False)]
    return [("fp32", torch.float32, False), ("tf32", torch.float32, True), *halves]


def _has_bf16():
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def product_flops(device, kind, dtype, tf32):
    """Take the largest side that does not take too long; of two products the first may load a library."""
    side = SMALLEST_SIDE
    with tf32_products(tf32):
        while True:
            a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
            seconds = min(timed(lambda: a @ b, kind) for _ in range(2))  # noqa: B023  called at once
            if seconds > LONG_ENOUGH:
                return 2 * side**3 / seconds
            if side >= SIDE[kind]:
                break
            side *= 2
        seconds = shortest(lambda: [a @ b for _ in range(PRODUCTS[kind])], kind)
    return 2 * side**3 * PRODUCTS[kind] / seconds


def copy_bandwidth(device, kind):
    """Count what is read and what is written."""
    source, target = (torch.zeros(COPIED_NUMBERS[kind], device=device) for _ in range(2))
    seconds = shortest(lambda: [target.copy_(source) for _ in range(COPIES[kind])], kind)
    return 2 * COPIES[kind] * source.numel() * source.element_size() / seconds


@contextlib.contextmanager
def tf32_products(allowed):
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def shortest(work, kind):
    """Return the seconds of the fastest of a few repeats, after one that does not count."""
    work()
    return min(timed(work, kind) for _ in range(REPEATS))


def timed(work, kind):
    if kind != "cuda":
        began = probe.now()
        work()
        return probe.now() - began
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3
