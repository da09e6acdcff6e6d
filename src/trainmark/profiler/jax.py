"""Profiles steps of a JAX program with `jax.profiler`, and leaves them as a Chrome trace.

Nothing of XLA is set: what runs under the profiler is what runs without it.
"""

import glob
import os
import shutil
import sys
import tempfile

from trainmark.profiler.xla import trace

TIMING, DETAIL = "timing", "detail"
USER_ANNOTATIONS, ALL_OF_HOST = 1, 2  # levels of XLA's host tracer


class Profiler:
    """Backend of Capture for JAX, which the program has imported already."""

    framework = "jax"

    def __init__(self):
        self._jax = sys.modules["jax"]
        self._folder = None
        self._lost = {}

    def passes(self):
        """Return the names of the passes; on a CPU the timing pass would see nothing."""
        return (TIMING, DETAIL) if self._on_gpu() else (DETAIL,)

    def start(self, pass_name):
        """Begin a pass with a device that has nothing to do."""
        self._wait()
        self._folder = tempfile.mkdtemp(prefix="trainmark-profile-")
        options = self._options(pass_name)
        if options is None:
            self._jax.profiler.start_trace(self._folder)
        else:
            self._jax.profiler.start_trace(self._folder, profiler_options=options)

    def stop(self, pass_name, path):
        """End a pass when the device has done all that it was given, and write its trace."""
        folder, self._folder = self._folder, None
        try:
            self._wait()
            self._jax.profiler.stop_trace()
            files = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
            if len(files) != 1:
                raise RuntimeError("jax.profiler left {} profiles where one was expected".format(len(files)))
            with open(files[0], "rb") as file:
                data = file.read()
            self._lost[pass_name] = trace.convert(data, path, os.getpid())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def annotate(self, name):
        """Return a context manager that names what the host does within; the device may lag behind."""
        return self._jax.profiler.TraceAnnotation(name)

    def facts(self):
        device = self._jax.local_devices()[0]
        return {
            "framework": self.framework,
            "framework_version": str(self._jax.__version__),
            "device": "cuda" if self._on_gpu() else "cpu",
            "device_name": str(device.device_kind),
            "profiler": "jax.profiler",
            "lost_records": dict(self._lost),
        }

    def memory(self):
        """Nothing: XLA plans its memory ahead, and the profile does not tell what holds the peak."""

    def _on_gpu(self):
        return self._jax.local_devices()[0].platform in ("gpu", "cuda", "rocm")

    def _options(self, pass_name):
        """Return what the pass records of the host; None before JAX 0.6, which records all of it."""
        make = getattr(self._jax.profiler, "ProfileOptions", None)
        if make is None:
            return None
        options = make()
        timing = pass_name == TIMING
        options.host_tracer_level = USER_ANNOTATIONS if timing else ALL_OF_HOST
        options.python_tracer_level = 0 if timing else 1
        return options

    def _wait(self):
        """Wait for the arrays of the program; what they come from is over then."""
        for array in self._jax.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()
