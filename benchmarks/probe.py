"""The same loop of 50 ms steps with and without the probe, block by block in turn."""

from __future__ import annotations

import os
import random
import tempfile
import time
from unittest.mock import patch

from benchmarks.row import Row, from_repeats
from trainmark import probe

STEP_SECONDS = 0.05
MOST_PER_CENT = 0.5
# At 50 ms a step the probe writes its lines every fifth or sixth step.
STEPS_A_FLUSH = 5
CALLS = 20_000


def measure(pairs: int = 40, steps: int = 10, calls: int = CALLS) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {probe.EVENTS_FOLDER: folder}):
        run = probe.start(unit="images")
        overheads = [_overhead(run, steps) for _ in range(pairs)]
        after_rest = [_microseconds_after_rest(run) for _ in range(pairs)]
        in_a_row = [_microseconds_in_a_row(run, calls // 10) for _ in range(10)]
        run.end()
    return [
        from_repeats("probe: added to a 50 ms step", overheads, "%", MOST_PER_CENT),
        from_repeats("probe: one call after 50 ms of rest", after_rest, "µs"),
        from_repeats("probe: one call of many in a row", in_a_row, "µs"),
    ]


def _overhead(run: probe.Run, steps: int) -> float:
    """Per cent by which a block with the probe takes longer than one without; which is first is chance."""
    blocks = [(True, run), (False, None)]
    random.shuffle(blocks)
    seconds = {probed: _block(each, steps) for probed, each in blocks}
    return 100 * (seconds[True] / seconds[False] - 1)


def _block(run: probe.Run | None, steps: int) -> float:
    began = time.perf_counter()
    for _ in range(steps):
        time.sleep(STEP_SECONDS)
        if run is not None:
            _step(run)
    return time.perf_counter() - began


def _step(run: probe.Run) -> None:
    """All that a workload tells of a step, the loss as something still to be read back."""
    run.step(256, loss=lambda: 6.9077, lr=0.256, data_wait=1.25e-4, memory=17_179_869_184)


def _microseconds_after_rest(run: probe.Run) -> float:
    """As between real steps: other work has taken the caches since the last call."""
    time.sleep(STEP_SECONDS)
    began = time.perf_counter()
    _step(run)
    return 1e6 * (time.perf_counter() - began)


def _microseconds_in_a_row(run: probe.Run, calls: int) -> float:
    """With its share of the writing."""
    began = time.perf_counter()
    for call in range(calls):
        _step(run)
        if call % STEPS_A_FLUSH == 0:
            run.flush()
    return 1e6 * (time.perf_counter() - began) / calls
