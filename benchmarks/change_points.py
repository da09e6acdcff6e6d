"""Change points in simulated histories: steps missed and false alarms, beside Apache Otava's."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.detection.detectors import Detector, otava, otava_python, trainmark
from benchmarks.detection.score import total
from benchmarks.detection.trial import POINTS, clean, followed, stepped
from benchmarks.row import Row
from benchmarks.simulated_histories import MACHINES, Step, simulate

MOST_ALARMS = 1.0
# Of steps of 2 % on noise of 0.5 %, after 30 results.
MOST_LATE = 5.0
MOST_SECONDS = 15.0


def measure(histories: int = 10, cases: int = 1_000, points: int = POINTS) -> list[Row]:
    python = otava_python()
    rows = []
    if python:
        with otava(python) as detector:
            missed, alarms, late = _figures(detector, histories, points)
        rows = [
            Row("change_points: Otava, steps missed", missed, "%"),
            Row("change_points: Otava, false alarms in 1,000 clean points", alarms, ""),
            Row("change_points: Otava, 2 % not found within 5 results", late, "%"),
        ]
    most_missed = rows[0].value if rows else None
    missed, alarms, late = _figures(trainmark, histories, points)
    return [
        *rows,
        Row("change_points: steps missed", missed, "%", most_missed),
        Row("change_points: false alarms in 1,000 clean points", alarms, "", MOST_ALARMS),
        Row("change_points: 2 % not found within 5 results", late, "%", MOST_LATE),
        Row(f"change_points: {cases:,} cases of {POINTS} points", _seconds(cases), "s", MOST_SECONDS),
    ]


def _figures(detector: Detector, histories: int, points: int) -> tuple[float, float, float]:
    """Return the share of steps missed, false alarms and the share detected late, over all machines."""
    steps = total(
        [stepped(detector, machine, size, histories) for machine in MACHINES for size in (0.01, 0.02)]
    )
    alarms = total([clean(detector, machine, histories, points) for machine in MACHINES])
    late = followed(detector, 30, 0.02, 5 * histories)
    return 100 * (1 - steps.rate), alarms.alarms_per_1000, 100 * (1 - late.found_within(5))


def _seconds(cases: int) -> float:
    rng = np.random.default_rng(0)
    made = [simulate(MACHINES[index % len(MACHINES)], POINTS, [Step(60, 0.02)], rng) for index in range(20)]
    began = time.perf_counter()
    for index in range(cases):
        trainmark(made[index % len(made)].points, [POINTS])
    return time.perf_counter() - began
