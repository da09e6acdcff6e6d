"""What a requested profile adds to the measured steps of an untouched program, and to its own steps."""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.hooks import Loop, hooked
from benchmarks.row import Row, from_repeats
from trainmark.inside.profiler import pytorch
from trainmark.inside.profiler.capture import PROFILE, Capture

MOST_PER_CENT = 0.5
WIDTH, LAYERS, BATCH = 256, 4, 128


def measure(pairs: int = 40, steps: int = 10, captures: int = 9) -> list[Row]:
    from trainmark.inside.hooks.pytorch import RECORDER

    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"TRAINMARK_EVENTS": folder}):
        loop = Loop()
        with hooked():
            measured = [_added_to_measured(loop, steps, folder) for _ in range(pairs)]
        RECORDER.close()
        with _one_thread():
            step = _training()
            profiled = [_added_to_profiled(step, Path(folder)) for _ in range(captures)]
    timing, detail = zip(*profiled, strict=True)
    return [
        from_repeats("profiling: requested, added to a measured 50 ms step", measured, "%", MOST_PER_CENT),
        from_repeats("profiling: added to a step by the timing pass", timing, "%"),
        from_repeats("profiling: added to a step by the detail pass", detail, "%"),
    ]


def _added_to_measured(loop: Loop, steps: int, folder: str) -> float:
    """Per cent by which a block with a profile requested takes longer; which is first is chance."""
    seconds = {}
    for requested in random.sample([True, False], 2):
        with patch.dict(os.environ, {PROFILE: folder} if requested else {}):
            seconds[requested] = loop.block(steps)
    return 100 * (seconds[True] / seconds[False] - 1)


def _added_to_profiled(step: Callable[[], None], folder: Path) -> list[float]:
    """Per cent by which a step of each pass takes longer than those before and after the pass."""
    with patch.dict(os.environ, {PROFILE: str(folder)}):
        capture = Capture(pytorch.Profiler)
    capture.begin()
    while capture.running:
        step()
        capture.step_ended()
    manifest = json.loads((folder / "rank0.json").read_text(encoding="utf-8"))
    unprofiled = manifest["unprofiled_step_seconds"]
    return [
        100 * (statistics.median(entry["step_seconds"]) / statistics.median(before + after) - 1)
        for entry, before, after in zip(manifest["passes"], unprofiled, unprofiled[1:], strict=False)
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep threads from waiting for each other on a machine that is not idle."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _training() -> Callable[[], None]:
    """Return the step of a small network in eager mode, some milliseconds long."""
    import torch

    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(LAYERS)]
    model, batch = torch.nn.Sequential(*layers), torch.randn(BATCH, WIDTH)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step
