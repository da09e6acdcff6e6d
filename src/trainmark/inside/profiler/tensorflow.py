"""Profiles steps of a TensorFlow program with `tf.profiler`, and leaves them as a Chrome trace."""

import sys

from trainmark.inside.profiler.xla_session import XlaProfiler


class Profiler(XlaProfiler):
    """Backend of Capture for TensorFlow 2.2 and later, which the program has imported already."""

    def __init__(self):
        super().__init__()
        self._tensorflow = sys.modules["tensorflow"]
        self._profiler = self._tensorflow.profiler.experimental

    def annotate(self, name):
        """Return a context manager that names what the host does within; the device may lag behind."""
        return self._profiler.Trace(name)

    def on_gpu(self):
        return bool(self._gpus())

    def start_trace(self, folder, host_level, with_frames):
        options = self._profiler.ProfilerOptions(
            host_tracer_level=host_level,
            python_tracer_level=1 if with_frames else 0,
        )
        self._profiler.start(folder, options=options)

    def stop_trace(self):
        self._profiler.stop()

    def wait(self):
        """Wait for the devices, where this version can (2.12)."""
        experimental = getattr(self._tensorflow.test, "experimental", None)
        if hasattr(experimental, "sync_devices"):
            experimental.sync_devices()

    def framework_facts(self):
        return {
            "framework": "tensorflow",
            "framework_version": str(self._tensorflow.__version__),
            "device_name": self._device_name(),
        }

    def _gpus(self):
        return self._tensorflow.config.list_logical_devices("GPU")

    def _device_name(self):
        physical = self._tensorflow.config.list_physical_devices("GPU")
        if not physical:
            return "cpu"
        return self._tensorflow.config.experimental.get_device_details(physical[0]).get("device_name")
