"""Write a Chrome trace of the form that PyTorch's profiler (Kineto) writes, so that one reader reads all.

Times are whole nanoseconds; the format has microseconds, of which three decimals keep them exact.
"""

import gzip
import json
import os

KERNEL, COPY, MEMSET = "kernel", "gpu_memcpy", "gpu_memset"
OPERATOR, ANNOTATION, PYTHON = "cpu_op", "user_annotation", "python_function"
RUNTIME, DRIVER = "cuda_runtime", "cuda_driver"
COMPRESSION = 3  # a large trace is written while other ranks wait
LINES_AT_ONCE = 4096
# A million events are written: by hand this takes half the time of a dict's JSON.
SPAN = '{{"ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}.{:03d}, "dur": {}.{:03d}'


def api_category(name):
    """Return the category of a call: `cudaLaunchKernel` is the runtime's, `cuLaunchKernel` the driver's."""
    return DRIVER if name.startswith("cu") and not name.startswith("cuda") else RUNTIME


class TraceWriter:
    """Streams events to a compressed file, which gets its name when it is whole."""

    def __init__(self, path, devices=(), base_ns=0, facts=None):
        """`devices` are the names by device number; `base_ns` is the wall time at which the trace's is 0."""
        self.lost = 0  # records that the profiler dropped
        self._path = path
        self._file = gzip.open(path + ".part", "wb", compresslevel=COMPRESSION)
        head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": number, "name": name} for number, name in enumerate(devices)],
            "baseTimeNanoseconds": base_ns,
            "displayTimeUnit": "ms",
        }
        head.update(facts or {})
        self._lines = []
        self._started = False
        self._names = {}
        self._file.write((json.dumps(head)[:-1] + ', "traceEvents": [\n').encode())

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """End the file; one that is not whole is removed."""
        if kind is None:
            self._flush()
            self._file.write('\n], "lost_records": {}}}\n'.format(self.lost).encode())
        self._file.close()
        if kind is None:
            os.replace(self._path + ".part", self._path)
        else:
            os.remove(self._path + ".part")

    def span(self, category, name, start, end, process, thread, args=None):
        """Add what took from `start` to `end`, in nanoseconds; a reader may refuse negative ones."""
        text = self._names.get(name)
        if text is None:
            text = self._names[name] = json.dumps(name)
        start, lasting = max(start, 0), max(end - start, 0)
        self._add(
            SPAN.format(
                category, text, process, thread, start // 1000, start % 1000, lasting // 1000, lasting % 1000
            )
            + (', "args": {}}}'.format(json.dumps(args)) if args else "}")
        )

    def thread_name(self, process, thread, name):
        event = {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}
        self._add(json.dumps(event))

    def _add(self, line):
        self._lines.append(line)
        if len(self._lines) >= LINES_AT_ONCE:
            self._flush()

    def _flush(self):
        if self._lines:
            separator = ",\n" if self._started else ""
            self._file.write((separator + ",\n".join(self._lines)).encode("utf-8", "replace"))
            self._lines, self._started = [], True
