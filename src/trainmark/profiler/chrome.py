"""Write a Chrome trace of the form that PyTorch's profiler (Kineto) writes, so that one reader reads all.

Times are whole nanoseconds; the format has microseconds, of which three decimals keep them exact.
"""

import gzip
import json
import os

KERNEL, COPY, MEMSET = "kernel", "gpu_memcpy", "gpu_memset"
OPERATOR, ANNOTATION, PYTHON = "cpu_op", "user_annotation", "python_function"
RUNTIME, DRIVER = "cuda_runtime", "cuda_driver"


def api_category(name):
    """Return the category of a call: `cudaLaunchKernel` is the runtime's, `cuLaunchKernel` the driver's."""
    return DRIVER if name.startswith("cu") and not name.startswith("cuda") else RUNTIME


class TraceWriter:
    """Streams events to a compressed file, which gets its name when it is whole."""

    def __init__(self, path, devices=(), base_ns=0, facts=None):
        """`devices` are the names by device number; `base_ns` is the wall time at which the trace's is 0."""
        self.lost = 0  # records that the profiler dropped
        self._path = path
        self._file = gzip.open(path + ".part", "wt", compresslevel=4, encoding="utf-8")
        head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": number, "name": name} for number, name in enumerate(devices)],
            "baseTimeNanoseconds": base_ns,
            "displayTimeUnit": "ms",
        }
        head.update(facts or {})
        self._file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        self._separator = ""

    def span(self, category, name, start, end, process, thread, args=None):
        """Add what took from `start` to `end`, in nanoseconds."""
        event = {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": process,
            "tid": thread,
            "ts": start / 1000,
            "dur": (end - start) / 1000,
        }
        if args:
            event["args"] = args
        self._write(event)

    def thread_name(self, process, thread, name):
        self._write({"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}})

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """End the file; one that is not whole is removed."""
        if kind is None:
            self._file.write('\n], "trainmark_lost_records": {}}}\n'.format(self.lost))
        self._file.close()
        if kind is None:
            os.replace(self._path + ".part", self._path)
        else:
            os.remove(self._path + ".part")

    def _write(self, event):
        self._file.write(self._separator + json.dumps(event))
        self._separator = ",\n"
