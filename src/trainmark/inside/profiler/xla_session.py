"""What the profilers of JAX and TensorFlow share: both leave an XSpace in a folder."""

import glob
import os
import shutil
import tempfile

from trainmark.inside.profiler import xla_trace

TIMING, DETAIL = "timing", "detail"
USER_ANNOTATIONS, ALL_OF_HOST = 1, 2  # levels of the host tracer


class XlaProfiler:
    """A backend of Capture; a framework adds how to start, stop and wait."""

    def __init__(self):
        self._folder = None
        self._lost = {}

    def passes(self):
        return TIMING, DETAIL

    def start(self, pass_name):
        """Begin a pass with a device that has nothing to do.

        Frames of Python are recorded in the detail pass alone: they cost most. On a CPU the host's own
        events are the operators, which both passes need.
        """
        self.wait()
        self._folder = tempfile.mkdtemp(prefix="trainmark-profile-")
        is_detail = pass_name == DETAIL
        level = USER_ANNOTATIONS if self.on_gpu() and not is_detail else ALL_OF_HOST
        self.start_trace(self._folder, level, with_frames=is_detail)

    def stop(self, pass_name, path):
        """End a pass when the device has done all that it was given, and write its trace."""
        folder, self._folder = self._folder, None
        try:
            self.wait()
            self.stop_trace()
            files = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
            if len(files) != 1:
                raise RuntimeError("the profiler left {} profiles where one was expected".format(len(files)))
            with open(files[0], "rb") as file:
                data = file.read()
            self._lost[pass_name] = xla_trace.convert(data, path, os.getpid())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def facts(self):
        device = "cuda" if self.on_gpu() else "cpu"
        facts = {"device": device, "profiler": "XLA", "lost_records": dict(self._lost)}
        return dict(facts, **self.framework_facts())

    def memory(self):
        """Nothing: the profile does not tell what holds the peak of memory."""
