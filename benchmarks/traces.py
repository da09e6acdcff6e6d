"""Reading a profiler's trace: time beside a plain `json.load`, and the memory of a large one."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import child
from benchmarks.row import Row, from_repeats
from trainmark.explain import chrome_trace

REPEATS = 5
# As Kineto writes them, with shapes and Python frames: an operator, its call, its kernel, two flows, a frame.
LAUNCH = """  {
    "ph": "X", "cat": "cpu_op", "name": "aten::op%(kind)d", "pid": 21, "tid": 21, "ts": %(host)s,
    "dur": 9.250,
    "args": {"External id": %(id)d, "Sequence number": %(id)d, "Fwd thread id": 0, "Record function id": 0,
    "Concrete Inputs": ["", "", "", "[2, 2]", "[1, 1]", "1"],
    "Input type": ["float", "float", "float", "ScalarList", "ScalarList", "Scalar"],
    "Input Strides": [[200704, 1, 3584, 64], [64, 1, 64, 64], [], [], [], []],
    "Input Dims": [[256, 64, 56, %(kind)d], [64, 64, 1, 1], [], [], [], []], "Ev Idx": %(id)d}
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 21, "tid": 21, "ts": %(call)s,
    "dur": 4.125, "args": {"External id": %(id)d, "cbid": 211, "correlation": %(id)d}
  },
  {
    "ph": "s", "id": %(id)d, "pid": 21, "tid": 21, "ts": %(call)s, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void kernel_of_kind_%(kind)d<float, 4>(int, float*, float const*)",
    "pid": 0, "tid": 7, "ts": %(kernel)s, "dur": 8.031, "args": {"External id": %(id)d, "queued": 0,
    "device": 0, "context": 1, "stream": 7, "correlation": %(id)d, "registers per thread": 32,
    "shared memory": 0, "blocks per SM": 51.878788, "warps per SM": 207.515152, "grid": [6848, 1, 1],
    "block": [128, 1, 1], "est. achieved occupancy %%": 100}
  },
  {
    "ph": "f", "id": %(id)d, "pid": 0, "tid": 7, "ts": %(kernel)s, "cat": "ac2g", "name": "ac2g", "bp": "e"
  },
  {
    "ph": "X", "cat": "python_function", "name": "model.py(%(kind)d): forward", "pid": 21, "tid": 21,
    "ts": %(frame)s, "dur": 9.750, "args": {"Python parent id": 1, "Python id": %(id)d, "Ev Idx": %(id)d}
  },
"""
EVENTS_A_LAUNCH = 6
LAUNCHES_A_STEP = 1000
KINDS = 97
# In microseconds, as in traces of 2026.
BEGIN = 4_108_960_469_720
MOST_OF_JSON = 3.0
# A tenth of what the same events take as Python objects.
MOST_BYTES_AN_EVENT = 300.0


def measure(events: int = 100_000, large: int = 1_000_000, repeats: int = REPEATS) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        count = write(path, events)
        rows = _speeds(path, count, repeats)
        count = write(path, large)
        size = path.stat().st_size
        read = child.run("benchmarks.traces", str(path))
    what = f"{count:,} events, {size / 1e6:,.0f} MB"
    return [
        *rows,
        Row(f"traces: {what}", read["seconds"], "s"),
        Row("traces: memory at most, the program's own included", read["memory_mb"], "MB"),
        Row("traces: memory per event", read["read_mb"] * 1e6 / count, "B", MOST_BYTES_AN_EVENT),
    ]


def _speeds(path: Path, count: int, repeats: int) -> list[Row]:
    """In turns, so that what else the machine does meets both alike."""
    seconds: dict[str, list[float]] = {"json": [], "read": []}
    for _ in range(repeats):
        began = time.perf_counter()
        with path.open(encoding="utf-8") as file:
            json.load(file)
        middle = time.perf_counter()
        chrome_trace.read(path)
        seconds["json"].append(middle - began)
        seconds["read"].append(time.perf_counter() - middle)
    ratios = [read / plain for read, plain in zip(seconds["read"], seconds["json"], strict=True)]
    return [
        from_repeats("traces: an event becomes columns", [s / count * 1e6 for s in seconds["read"]], "µs"),
        from_repeats("traces: an event in json.load", [s / count * 1e6 for s in seconds["json"]], "µs"),
        from_repeats("traces: reading ÷ json.load", ratios, "×", MOST_OF_JSON),
    ]


def write(path: Path, events: int) -> int:
    """Write steps of a model until there are so many events; return their number."""
    launches = max(events // EVENTS_A_LAUNCH, 1)
    steps = 0
    with path.open("w", encoding="ascii") as file:
        file.write(
            '{\n  "schemaVersion": 1, "record_shapes": 1, "baseTimeNanoseconds": 1790857026000000000,\n'
        )
        file.write('  "deviceProperties": [{"id": 0, "name": "A GPU"}],\n  "traceEvents": [\n')
        for number in range(launches):
            at = BEGIN + 10 * number
            values = {"id": number + 1, "kind": number % KINDS, "frame": f"{at}.001", "host": f"{at}.125"}
            file.write(LAUNCH % {**values, "call": f"{at + 2}.375", "kernel": f"{at + 31}.507"})
            if (number + 1) % LAUNCHES_A_STEP == 0 or number + 1 == launches:
                first = BEGIN + 10 * steps * LAUNCHES_A_STEP
                file.write(
                    f'  {{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{steps}", "pid": 21, '
                    f'"tid": 21, "ts": {first}, "dur": {at + 10 - first}, "args": {{"External id": 0}}}}'
                )
                file.write("\n" if number + 1 == launches else ",\n")
                steps += 1
        file.write('  ],\n  "traceName": "trace.json"\n}\n')
    return launches * EVENTS_A_LAUNCH + steps


def _read(path: Path) -> None:
    before = child.memory_peak_mb()
    began = time.perf_counter()
    chrome_trace.read(path)
    seconds = time.perf_counter() - began
    memory = child.memory_peak_mb()
    print(json.dumps({"seconds": seconds, "memory_mb": memory, "read_mb": memory - before}))


if __name__ == "__main__":
    _read(Path(sys.argv[1]))
