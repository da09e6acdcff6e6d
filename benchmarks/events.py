"""Reading a very long run's events into columns: how long it takes and how much memory."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import child
from benchmarks.row import Row
from trainmark.events import RunEnd, RunStart, stream
from trainmark.measure.trace import trace_of

# As the probe writes it.
STEP = (
    '{"event":"step","rank":0,"mono":%r,"wall":%r,"step":%d,"samples":256,"loss":6.9077,"lr":0.256,'
    '"data_wait":0.000125,"memory":17179869184}\n'
)


def measure(steps: int = 1_000_000) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.jsonl"
        _write(path, steps)
        read = child.run("benchmarks.events", str(path))
    return [
        Row(f"events: {steps:,} steps read into a trace", read["seconds"], "s"),
        Row("events: memory at most", read["memory_mb"], "MB"),
    ]


def _write(path: Path, steps: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(stream.encode(RunStart(0, 1, 1000.0, 1.7e9, unit="images")) + "\n")
        for number in range(steps):
            at = 1000.0 + 0.05 * (number + 1)
            file.write(STEP % (at, 1.7e9 + at, number))
        file.write(stream.encode(RunEnd(0, at, 1.7e9 + at)) + "\n")


def _read(path: Path) -> None:
    began = time.perf_counter()
    trace_of(stream.read(path))
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "memory_mb": child.memory_peak_mb()}))


if __name__ == "__main__":
    _read(Path(sys.argv[1]))
