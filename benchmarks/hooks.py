"""The same PyTorch loop of 50 ms steps with and without the hooks of an untouched program, in turn."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any
from unittest.mock import patch

from benchmarks.row import Row, from_repeats

STEP_SECONDS = 0.05
MOST_PER_CENT = 0.5


class Loop:
    """A loader and an optimizer so small that a step is the sleep in it."""

    def __init__(self) -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.zeros(1)
        self._optimizer = torch.optim.SGD([parameter], 0.1)
        self._loader = DataLoader(TensorDataset(torch.zeros(1 << 16, 1)), batch_size=32)
        self._batches: Iterator[Any] = iter(self._loader)

    def step(self) -> None:
        if next(self._batches, None) is None:
            self._batches = iter(self._loader)
        self._optimizer.step()

    def block(self, steps: int) -> float:
        began = time.perf_counter()
        for _ in range(steps):
            time.sleep(STEP_SECONDS)
            self.step()
        return time.perf_counter() - began


@contextmanager
def hooked() -> Iterator[None]:
    """Attach the hooks of an optimizer and of the loaders, as in a measured program, then take them away."""
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    from trainmark.inside.hooks import pytorch

    iterators = dataloader._BaseDataLoaderIter
    methods = {name: getattr(iterators, name) for name in ("__next__", "_next_index", "_reset")}
    handle = optimizer.register_optimizer_step_post_hook(pytorch._after_step)
    pytorch.watch_loaders(dataloader)
    try:
        yield
    finally:
        handle.remove()
        for name, method in methods.items():
            setattr(iterators, name, method)


def measure(pairs: int = 40, steps: int = 10, calls: int = 4000) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"TRAINMARK_EVENTS": folder}):
        loop = Loop()
        overheads = [_overhead(loop, steps) for _ in range(pairs)]
        in_a_row = [_microseconds(loop, calls) for _ in range(10)]
        sys.modules["trainmark.inside.hooks.pytorch"].RECORDER.close()
    return [
        from_repeats("hooks: added to a 50 ms step of PyTorch", overheads, "%", MOST_PER_CENT),
        from_repeats("hooks: one step and its batch, of many in a row", in_a_row, "µs"),
    ]


def _overhead(loop: Loop, steps: int) -> float:
    """Per cent by which a block with the hooks takes longer than one without; which is first is chance."""
    seconds = {}
    for watched in random.sample([True, False], 2):
        if watched:
            with hooked():
                seconds[watched] = loop.block(steps)
        else:
            seconds[watched] = loop.block(steps)
    return 100 * (seconds[True] / seconds[False] - 1)


def _microseconds(loop: Loop, calls: int) -> float:
    """What the hooks add to one call, from calls with them and without them in turn."""
    seconds = {True: 0.0, False: 0.0}
    for watched, _ in zip(cycle([True, False]), range(20), strict=False):
        if watched:
            with hooked():
                seconds[watched] += _calls(loop, calls // 20)
        else:
            seconds[watched] += _calls(loop, calls // 20)
    return 1e6 * (seconds[True] - seconds[False]) / (calls / 2)


def _calls(loop: Loop, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        loop.step()
    return time.perf_counter() - began
