"""What the device does at best, measured at the end of a profiled program: products by precision, and copies.

A floor is believable only from the device that the step ran on, in the state that the step left it in.
"""

import contextlib
import sys
import time

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
    return Peaks(sys.modules["torch"], device).measure()


class Peaks:
    """The measurements on one device of the PyTorch that the program has imported."""

    def __init__(self, torch, device):
        self.torch, self.device, self.kind = torch, device, torch.device(device).type

    def measure(self):
        peaks = {}
        for name, dtype, tf32 in self.precisions():
            with contextlib.suppress(RuntimeError):  # out of memory is one too
                peaks[name] = self.product_flops(dtype, tf32)
        with contextlib.suppress(RuntimeError):
            peaks["bandwidth"] = self.copy_bandwidth()
        return peaks

    def precisions(self):
        single, half, brain = self.torch.float32, self.torch.float16, self.torch.bfloat16
        if self.kind == "cpu":
            return [("fp32", single, False), ("bf16", brain, False)]
        return [("fp32", single, False), ("tf32", single, True), ("bf16", brain, False), ("amp", half, False)]

    def product_flops(self, dtype, tf32):
        """Take the largest side that does not take too long."""
        side = SMALLEST_SIDE
        with self.tf32_products(tf32):
            while True:
                a, b = (self.torch.randn(side, side, device=self.device).to(dtype) for _ in range(2))
                # Called at once, before the names mean others.
                if side >= SIDE[self.kind] or self.seconds(lambda: a @ b) > LONG_ENOUGH:  # noqa: B023
                    break
                side *= 2
            seconds = self.shortest(lambda: [a @ b for _ in range(PRODUCTS[self.kind])])
        return 2 * side**3 * PRODUCTS[self.kind] / seconds

    def copy_bandwidth(self):
        """Count what is read and what is written."""
        numbers, copies = COPIED_NUMBERS[self.kind], COPIES[self.kind]
        source, target = (self.torch.zeros(numbers, device=self.device) for _ in range(2))
        seconds = self.shortest(lambda: [target.copy_(source) for _ in range(copies)])
        return 2 * copies * source.numel() * source.element_size() / seconds

    @contextlib.contextmanager
    def tf32_products(self, allowed):
        matmul = self.torch.backends.cuda.matmul
        before, matmul.allow_tf32 = matmul.allow_tf32, allowed
        try:
            yield
        finally:
            matmul.allow_tf32 = before

    def shortest(self, work):
        """Return the seconds of the fastest of a few repeats, after one that does not count."""
        work()
        return min(self.seconds(work) for _ in range(REPEATS))

    def seconds(self, work):
        if self.kind != "cuda":
            began = time.perf_counter()
            work()
            return time.perf_counter() - began
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3
