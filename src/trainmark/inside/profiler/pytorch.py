"""PyTorch's profiler (Kineto) as a backend of `capture`, for versions 2.1 and later."""

import contextlib
import gc
import gzip
import os
import shutil
import sys
from importlib import import_module

from trainmark.inside.profiler import heap, pytorch_memory, pytorch_names

TIMING, DETAIL = "timing", "detail"
COMPRESSION = 3  # a trace of a gigabyte is written while other ranks wait


class Profiler:
    """A pass `timing` at least overhead, and `detail` with operands, Python frames and modules.

    On a GPU `timing` has kernels, runtime calls and annotations; on a CPU operators are the kernels.
    """

    def __init__(self, optimizers=None, models=()):
        self._torch = sys.modules["torch"]
        self._optimizers, self._models = optimizers, models
        self._memory_watch = None
        self._on_gpu = self._torch.cuda.is_available() and self._torch.cuda.is_initialized()
        if self._on_gpu:
            # CUPTI that is torn down and set up again does not survive CUDA graphs.
            os.environ.setdefault("TEARDOWN_CUPTI", "0")
            os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")
        self._profile = None
        self._model_names = {}

    def passes(self):
        return (TIMING, DETAIL)

    def prepare(self, name):
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or it writes each start and stop to standard error
        profiler = import_module("torch.profiler")
        kinds = profiler.ProfilerActivity
        detail = name == DETAIL
        self._profile = profiler._KinetoProfile(
            activities=[kinds.CPU, kinds.CUDA] if self._on_gpu else [kinds.CPU],
            record_shapes=detail,
            with_stack=detail,
        )
        self._profile.prepare_trace()
        if not self._on_gpu:
            heap.reserve()

    def start(self, name):
        with _annotations_only() if name == TIMING and self._on_gpu else contextlib.nullcontext():
            self._profile.start_trace()

    def stop(self, name, path):
        profile, self._profile = self._profile, None
        profile.stop_trace()
        if name == DETAIL:
            with contextlib.suppress(Exception):  # the profile is worth having without
                self._model_names = pytorch_names.model_names(profile, sys._getframe(1))
        plain = path[: -len(".gz")] + ".part"
        try:
            profile.export_chrome_trace(plain)
            with open(plain, "rb") as source, gzip.open(path, "wb", COMPRESSION) as target:
                shutil.copyfileobj(source, target, 1 << 20)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(plain)

    def annotate(self, name):
        return self._torch.autograd.profiler.record_function(name)

    def synchronize(self):
        if self._on_gpu:
            self._torch.cuda.synchronize()

    def peaks(self):
        from trainmark.inside.profiler import pytorch_peaks

        return pytorch_peaks.measure("cuda" if self._on_gpu else "cpu")

    def start_memory(self):
        if not self._on_gpu:
            heap.give_back()
        optimizers = self._optimizers if self._optimizers is not None else self._living_optimizers()
        self._memory_watch = pytorch_memory.MemoryWatch(optimizers, self._models)
        self._memory_watch.start()

    def memory(self):
        return self._memory_watch.finish()

    def _living_optimizers(self):
        """Return the optimizers of a program that does not give us any."""
        kind = self._torch.optim.Optimizer
        return [value for value in gc.get_objects() if issubclass(type(value), kind)]

    def facts(self):
        torch = self._torch
        return {
            "framework": "pytorch",
            "framework_version": str(torch.__version__),
            "device": "cuda" if self._on_gpu else "cpu",
            "device_name": torch.cuda.get_device_name() if self._on_gpu else "cpu",
            "cuda": torch.version.cuda,
            "threads": torch.get_num_threads(),
            "model_names": self._model_names,
        }


@contextlib.contextmanager
def _annotations_only():
    """Have a profiler that starts meanwhile record no operator on the host, only what `annotate` names.

    CUPTI alone (activities=[CUDA]) would leave out the annotations too. A version that cannot tell them apart
    records the operators, without their shapes.
    """
    profiler = import_module("torch.autograd.profiler")
    enable = profiler._enable_profiler

    def enable_annotations(config, activities):
        try:
            scopes = {import_module("torch._C._profiler").RecordScope.USER_SCOPE}
            enable(config, activities, scopes)
        except (ImportError, AttributeError, TypeError):
            enable(config, activities)

    profiler._enable_profiler = enable_annotations
    try:
        yield
    finally:
        profiler._enable_profiler = enable
    # Inductor looks here before each launch, to make a record of its own.
    if hasattr(profiler, "_is_profiler_enabled"):
        profiler._is_profiler_enabled = False
