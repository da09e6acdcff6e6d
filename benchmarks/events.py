"""Reading a very long and a very wide run's events: how long it takes and how much memory."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import child
from benchmarks.row import Row
from trainmark.events import RunEnd, RunStart, stream
from trainmark.measure.key import Key
from trainmark.store.recompute import figure_of_folder

# As the probe writes it.
STEP = (
    '{"event":"step","rank":%d,"mono":%r,"wall":%r,"step":%d,"samples":256,"loss":6.9077,"lr":0.256,'
    '"data_wait":0.000125,"memory":17179869184}\n'
)
MOST_SECONDS = 60.0
MOST_MB = 2000.0


def measure(long: int = 1_000_000, ranks: int = 8192, steps: int = 500) -> list[Row]:
    rows = []
    for what, shape, limits in (
        (f"{long:,} steps", (1, long), (None, None)),
        (f"{ranks:,} ranks × {steps} steps", (ranks, steps), (MOST_SECONDS, MOST_MB)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            _write(Path(folder), *shape)
            read = child.run("benchmarks.events", folder)
        rows += [
            Row(f"events: {what} become a figure", read["seconds"], "s", limits[0]),
            Row("events: memory at most", read["memory_mb"], "MB", limits[1]),
        ]
    return rows


def _write(folder: Path, ranks: int, steps: int) -> None:
    (folder / "events").mkdir()
    for rank in range(ranks):
        with (folder / "events" / f"rank{rank}.jsonl").open("w", encoding="utf-8") as file:
            file.write(stream.encode(RunStart(rank, ranks, 1000.0, 1.7e9, unit="images")) + "\n")
            for number in range(steps):
                at = 1000.0 + 0.05 * (number + 1) + 1e-6 * rank
                file.write(STEP % (rank, at, 1.7e9 + at, number))
            file.write(stream.encode(RunEnd(rank, at, 1.7e9 + at)) + "\n")


def _read(folder: Path) -> None:
    began = time.perf_counter()
    figure_of_folder(folder, Key("resnet50"), warmup_steps=20)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "memory_mb": child.memory_peak_mb()}))


if __name__ == "__main__":
    _read(Path(sys.argv[1]))
