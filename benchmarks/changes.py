"""The steady window of a very long run, in the shapes that runs have."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.row import Row, from_repeats
from trainmark.measure.statistics import Floats
from trainmark.measure.steady_window import steady_window

MOST_SECONDS = 5.0


def measure(steps: int = 1_000_000, repeats: int = 3) -> list[Row]:
    rows = []
    for shape, seconds in _runs(steps).items():
        times = [_seconds(seconds) for _ in range(repeats)]
        rows.append(from_repeats(f"changes: {steps:,} steps, {shape}", times, "s", MOST_SECONDS))
    return rows


def _runs(steps: int) -> dict[str, Floats]:
    noise = np.random.default_rng(0).normal(0.05, 0.0005, steps)
    warming = noise.copy()
    warming[: steps // 10] *= 1.4
    drifting = noise * np.linspace(1.0, 1.3, steps)
    stalling = noise.copy()
    stalling[::500] += 0.4
    wandering = noise * np.repeat(np.random.default_rng(1).uniform(0.9, 1.1, 200), -(-steps // 200))[:steps]
    return {
        "level": noise,
        "with warm-up": warming,
        "with drift": drifting,
        "with regular stalls": stalling,
        "with 200 levels": wandering,
    }


def _seconds(seconds: Floats) -> float:
    began = time.perf_counter()
    steady_window(seconds, floor=20)
    return time.perf_counter() - began
