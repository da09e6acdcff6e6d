"""Generated pictures of ImageNet's size, by two processes: what one takes, over sets of growing size."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.row import Row
from trainmark.data.make import make_set
from trainmark.data.scene import PicturePlan

WORKERS = 2
# 200 pictures a second.
MOST_MILLISECONDS = 5.0


def measure(images: int = 500, doublings: int = 2) -> list[Row]:
    rows = []
    for more in range(doublings + 1):
        count = images << more
        plan = PicturePlan(10, count, 0, 0.5, 500, 375, seed=0)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            make_set(plan, Path(folder) / "set", WORKERS, lambda done, total: None, {})
            took = time.perf_counter() - began
        # The start of the processes weighs on the small ones.
        target = MOST_MILLISECONDS if more == doublings else None
        rows.append(Row(f"pictures: {count:,} made, each", 1000 * took / count, "ms", target))
    return rows
