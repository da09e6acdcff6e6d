"""Profiles steps of a JAX program with `jax.profiler`, and leaves them as a Chrome trace.

Nothing of XLA is set: what runs under the profiler is what runs without it.
"""

import sys

from trainmark.inside.profiler.xla_session import XlaProfiler


class Profiler(XlaProfiler):
    """Backend of Capture for JAX, which the program has imported already."""

    def __init__(self):
        super().__init__()
        self._jax = sys.modules["jax"]

    def annotate(self, name):
        """Return a context manager that names what the host does within; the device may lag behind."""
        return self._jax.profiler.TraceAnnotation(name)

    def on_gpu(self):
        return self._jax.local_devices()[0].platform in ("gpu", "cuda", "rocm")

    def start_trace(self, folder, host_level, with_frames):
        """Start the profiler; before JAX 0.6 it has no options, and records all."""
        make_options = getattr(self._jax.profiler, "ProfileOptions", None)
        if make_options is None:
            self._jax.profiler.start_trace(folder)
            return
        options = make_options()
        options.host_tracer_level = host_level
        options.python_tracer_level = 1 if with_frames else 0
        self._jax.profiler.start_trace(folder, profiler_options=options)

    def stop_trace(self):
        self._jax.profiler.stop_trace()

    def wait(self):
        """Wait for the arrays of the program; what they come from is over then."""
        for array in self._jax.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()

    def framework_facts(self):
        return {
            "framework": "jax",
            "framework_version": str(self._jax.__version__),
            "device_name": str(self._jax.local_devices()[0].device_kind),
        }
