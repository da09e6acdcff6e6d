"""Reading a set by the host loader: time an image and memory at growing sizes."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import child
from benchmarks.row import Row, from_repeats
from trainmark.data.make import make_set
from trainmark.data.scene import PicturePlan

BATCH, SIZE, WORKERS = 32, 224, 2
MOST_TIMES_THE_TIME, MOST_MORE_MEMORY_MB = 1.5, 20


def measure(images: int = 256, doublings: int = 3, repeats: int = 5) -> list[Row]:
    sizes = [images << doubling for doubling in range(doublings + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            plan = PicturePlan(10, size, 0, 0.5, 500, 375, seed=0)
            make_set(plan, Path(folder) / str(size), WORKERS, lambda done, total: None, {})
        runs: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
        for _ in range(repeats):
            for size in sizes:
                runs[size].append(child.run("benchmarks.loading", str(Path(folder) / str(size))))
    small, large = runs[sizes[0]], runs[sizes[-1]]
    growth = [last["milliseconds"] / first["milliseconds"] for first, last in zip(small, large, strict=True)]
    more = [last["memory_mb"] - first["memory_mb"] for first, last in zip(small, large, strict=True)]
    times = f"{sizes[-1] // sizes[0]} times the images"
    rows = [
        from_repeats(
            f"loading: {size:,} images, time an image", [run["milliseconds"] for run in runs[size]], "ms"
        )
        for size in sizes
    ]
    rows += [
        from_repeats(f"loading: {times}, times the time an image", growth, "×", MOST_TIMES_THE_TIME),
        from_repeats("loading: memory at most", [run["memory_mb"] for run in large], "MB"),
        from_repeats(f"loading: {times}, more memory", more, "MB", MOST_MORE_MEMORY_MB),
    ]
    return rows


def _read(root: Path) -> None:
    """One epoch; the threads and buffers of the loader are there before the clock starts."""
    from trainmark.workloads.images import dataset, host

    split = dataset.open_split(root, "train")
    loader = host.HostLoader(split, min(BATCH, split.count), SIZE, workers=WORKERS)
    next(loader.training(0))
    began = time.perf_counter()
    batches = sum(1 for _ in loader.training(1))
    seconds = time.perf_counter() - began
    loader.close()
    each = 1000 * seconds / (batches * loader.batch)
    print(json.dumps({"milliseconds": each, "memory_mb": child.memory_peak_mb()}))


if __name__ == "__main__":
    _read(Path(sys.argv[1]))
