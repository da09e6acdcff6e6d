"""The simulated histories that every detector is given, the same to each by their seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from benchmarks.detection.detectors import Detector
from benchmarks.detection.score import Score, online, total, whole
from benchmarks.simulated_histories import DRIFTING, MACHINES, History, Machine, Step, random_steps, simulate
from trainmark.measure.history.changes import changes, drifts

POINTS = 100
SIZES = (0.005, 0.01, 0.02, 0.05, 0.1)
# Not the seeds that the thresholds were chosen on.
SEED = 24
# Looks after a step, where its delay is asked for.
LATEST = 20


@dataclass(frozen=True)
class DriftScore:
    """Of so many histories: those reported as one drift and nothing else, those of them whose interval holds
    the truth, and all reports together."""

    histories: int
    one: int
    covered: int
    reports: int


def clean(detector: Detector, machine: Machine, histories: int, points: int = POINTS) -> Score:
    """Look after every result at histories without a change."""
    return total(
        [
            online(history, detector(history.points, range(1, points + 1)))
            for history in _histories(machine, histories, points, 0.0)
        ]
    )


def stepped(detector: Detector, machine: Machine, size: float, histories: int) -> Score:
    """Look once at whole histories with one step somewhere in the middle half."""
    return total(
        [
            whole(history, detector(history.points, [POINTS])[0])
            for history in _histories(machine, histories, POINTS, size)
        ]
    )


def several(detector: Detector, machine: Machine, histories: int) -> Score:
    """Look once at whole histories of 200 points with a step of 1, 2, 5 and 3 %."""
    scores = []
    for index in range(histories):
        rng = np.random.default_rng([SEED, index, 4])
        history = simulate(machine, 2 * POINTS, random_steps(2 * POINTS, (0.01, 0.02, 0.05, 0.03), rng), rng)
        scores.append(whole(history, detector(history.points, [2 * POINTS])[0]))
    return total(scores)


def followed(detector: Detector, before: int, size: float, histories: int) -> Score:
    """Look after every result behind a step that comes after `before` results on the normal machine."""
    scores = []
    for index in range(histories):
        rng = np.random.default_rng([SEED, index, before])
        sign = 1 if index % 2 else -1
        history = simulate(MACHINES[0], before + LATEST, [Step(before, sign * size)], rng)
        looks = detector(history.points, range(before + 1, before + LATEST + 1))
        scores.append(online(history, [[]] * before + looks))
    return total(scores)


def drifting(histories: int) -> DriftScore:
    """Look once at whole histories of the drifting machine, as `trainmark history` does."""
    one, covered, reports = 0, 0, 0
    truth = math.exp(-DRIFTING.drift * (POINTS - 1) / POINTS)
    for history in _histories(DRIFTING, histories, POINTS, 0.0):
        steps = changes(history.points)
        sloped = drifts(history.points, steps)
        reports += len(steps) + len(sloped)
        if sloped and not steps:
            one += 1
            covered += sloped[0].low <= truth <= sloped[0].high
    return DriftScore(histories, one, covered, reports)


def _histories(machine: Machine, count: int, points: int, size: float) -> Iterator[History]:
    for index in range(count):
        rng = np.random.default_rng([SEED, index, round(size * 1e4), crc32(machine.name.encode())])
        yield simulate(machine, points, random_steps(points, (size,), rng) if size else (), rng)
