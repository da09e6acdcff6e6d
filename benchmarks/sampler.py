"""What watching the devices costs: the share of one core that the sampler uses."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.row import Row, from_repeats
from trainmark.machine.sampler import Sampler


def measure(repeats: int = 6, seconds: float = 2.0) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, Sampler(Path(folder) / "samples.jsonl", interval=0.5):
        time.sleep(seconds)  # its first look opens everything
        shares = [_share(seconds) for _ in range(repeats)]
    return [from_repeats("sampler: share of a core at 2 Hz", shares, "%")]


def _share(seconds: float) -> float:
    """This thread sleeps, so what the process uses is the sampler's."""
    used, began = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    return 100 * (time.process_time() - used) / (time.perf_counter() - began)
