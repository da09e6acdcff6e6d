"""Backend of Capture for frameworks without a profiler of their own that we read: Paddle, OneFlow, ...

CUPTI begins to record at any time: nothing has to be set before the program starts.
"""

import contextlib
import ctypes
import os
import tempfile

from trainmark.inside.profiler.cupti import records
from trainmark.inside.profiler.cupti.build import CUPTI_LIBRARY, LIBRARY, build, cupti_library

TIMING = "timing"


class NoProfilerError(RuntimeError):
    """CUDA cannot be profiled here; the message is a sentence that says why."""


class Profiler:
    """Starts and stops the library in C, and turns what it recorded into a trace.

    There is one pass: CUPTI knows kernels, copies and calls, no operators and no shapes.
    """

    def __init__(self, framework, framework_version, cache_folder=None, library=None):
        """Compile into `cache_folder` unless a `library` is given, here or by TRAINMARK_CUPTI."""
        self._framework = framework
        self._version = framework_version
        path = library or os.environ.get(LIBRARY)
        if not path:
            built = build(cache_folder or own_cache())
            if built.path is None:
                raise NoProfilerError(built.reason)
            path = built.path
        if not os.environ.get(CUPTI_LIBRARY):
            # Read by the library in C; one that the framework has loaded comes first.
            os.environ[CUPTI_LIBRARY] = cupti_library() or ""
        self._library = _load(path)
        self._annotations = []
        self._file = None
        self._lost = {}
        self._devices = []

    def passes(self):
        return (TIMING,)

    def start(self, pass_name):
        """Begin to record."""
        descriptor, self._file = tempfile.mkstemp(prefix="trainmark-cupti-")
        os.close(descriptor)
        self._annotations = []
        problem = self._library.trainmark_profile_start(self._file.encode())
        if problem:
            self._remove()
            raise NoProfilerError("CUPTI does not record: {}".format(problem.decode()))

    def stop(self, pass_name, path):
        """Wait for the devices, end the records and write their trace."""
        try:
            problem = self._library.trainmark_profile_stop()
            if problem:
                raise NoProfilerError("CUPTI's records are not whole: {}".format(problem.decode()))
            self._devices = records.device_names(self._file)
            self._lost[pass_name] = records.convert(self._file, self._annotations, path, os.getpid())
        finally:
            self._remove()

    @contextlib.contextmanager
    def annotate(self, name):
        """Name what this thread does within, on the clock of the records."""
        start = self._library.trainmark_profile_timestamp()
        try:
            yield
        finally:
            end = self._library.trainmark_profile_timestamp()
            thread = self._library.trainmark_profile_thread()
            self._annotations.append(records.Annotation(name, start, end, thread))

    def facts(self):
        return {
            "framework": self._framework,
            "framework_version": self._version,
            "device": "cuda",
            "device_name": self._devices[0] if self._devices else None,
            "profiler": "cupti",
            "lost_records": dict(self._lost),
        }

    def memory(self):
        """Nothing: CUPTI's activities do not tell what a framework's allocator holds."""

    def _remove(self):
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):  # a recording that failed to begin removes its own
                os.remove(self._file)
            self._file = None


def own_cache() -> str:
    """Return the user's own folder: in a shared one somebody else could leave a library for us to load."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "trainmark", "cupti")


def _load(path):
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NoProfilerError("The CUPTI library does not load: {}".format(error)) from None
    library.trainmark_profile_start.argtypes = [ctypes.c_char_p]
    library.trainmark_profile_start.restype = ctypes.c_char_p
    library.trainmark_profile_stop.restype = ctypes.c_char_p
    library.trainmark_profile_timestamp.restype = ctypes.c_uint64
    library.trainmark_profile_thread.restype = ctypes.c_uint32
    return library
