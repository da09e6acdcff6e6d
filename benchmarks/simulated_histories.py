"""Histories with known truth: machines with the faults of real ones, and steps whose place is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import Floats, Integers

SECONDS_A_DAY = 86_400.0
BEGIN = 1_700_000_000 // SECONDS_A_DAY * SECONDS_A_DAY
LEVEL = 1_000.0


@dataclass(frozen=True)
class Machine:
    """What a machine does to a result; all sizes are shares of the throughput.

    `point`, `trial` and `day` are standard deviations; `tails` the degrees of freedom of Student's t where
    points are not normal. A share `mode_share` of the points (or of the trials, with `mode_of_trials`) runs
    slower by `mode_gap`; a share `outliers` of the points lies 5 to 30 % off, most of them below. `drift`
    is by how much the level falls over 100 points. `trials` are the fewest and the most of a point.
    """

    name: str
    point: float = 0.005
    trial: float = 0.0
    day: float = 0.0
    results_a_day: int = 1
    tails: float | None = None
    mode_share: float = 0.0
    mode_gap: float = 0.0
    mode_of_trials: bool = False
    outliers: float = 0.0
    drift: float = 0.0
    trials: tuple[int, int] = (1, 1)


MACHINES = (
    Machine("normal, 0.5 %"),
    Machine("1 to 6 trials", point=0.003, trial=0.006, trials=(1, 6)),
    Machine("day effects", point=0.003, trial=0.003, day=0.004, results_a_day=4, trials=(3, 3)),
    Machine("heavy tails", point=0.004, tails=3.0),
    Machine("outliers", outliers=0.04),
    Machine("bimodal points", point=0.003, mode_share=0.3, mode_gap=0.03),
    Machine("rare mode", point=0.003, mode_share=0.1, mode_gap=0.03),
    Machine(
        "bimodal trials",
        point=0.002,
        trial=0.002,
        mode_share=0.3,
        mode_gap=0.03,
        mode_of_trials=True,
        trials=(1, 6),
    ),
)
DRIFTING = Machine("drift of 2 %", drift=0.02)


@dataclass(frozen=True)
class Step:
    """From point `index` on the level is higher by the share `size`, or lower where it is negative."""

    index: int
    size: float


@dataclass(frozen=True)
class History:
    """Points in order of time and the steps that are truly in them."""

    machine: str
    points: tuple[RunPoint, ...]
    steps: tuple[Step, ...]


def simulate(machine: Machine, n: int, steps: Sequence[Step], rng: np.random.Generator) -> History:
    """Return n points of the machine with the steps in them."""
    place = np.arange(n)
    day = place // machine.results_a_day
    level = -machine.drift * place / 100
    for step in steps:
        level[step.index :] += np.log1p(step.size)
    level += rng.normal(0, machine.day, n)[day] + _point_noise(machine, n, rng)
    struck = rng.random(n) < machine.outliers
    level += struck * rng.uniform(0.05, 0.3, n) * rng.choice([-1, -1, -1, 1], n)
    if not machine.mode_of_trials:
        level += (rng.random(n) < machine.mode_share) * np.log1p(-machine.mode_gap)
    counts = rng.integers(machine.trials[0], machine.trials[1], n, endpoint=True)
    return History(machine.name, _points(machine, level, day, counts, rng), tuple(steps))


def random_steps(n: int, sizes: Sequence[float], rng: np.random.Generator) -> list[Step]:
    """Return one step of each size, up or down, in equal stretches of the history with room between them."""
    stretch = n / (len(sizes) + 1)
    return [
        Step(round(stretch * (index + 1) + stretch * rng.uniform(-0.25, 0.25)), size * rng.choice([-1, 1]))
        for index, size in enumerate(sizes)
    ]


def _point_noise(machine: Machine, n: int, rng: np.random.Generator) -> Floats:
    draws = rng.normal(0, 1, n) if machine.tails is None else rng.standard_t(machine.tails, n)
    return np.asarray(machine.point * draws)


def _points(
    machine: Machine, level: Floats, day: Integers, counts: Integers, rng: np.random.Generator
) -> tuple[RunPoint, ...]:
    points = []
    for index, count in enumerate(counts):
        trials = level[index] + rng.normal(0, machine.trial, count)
        if machine.mode_of_trials:
            trials += (rng.random(count) < machine.mode_share) * np.log1p(-machine.mode_gap)
        # Results of one day lie an hour apart.
        time = BEGIN + float(day[index]) * SECONDS_A_DAY + index % machine.results_a_day * 3_600.0
        points.append(RunPoint(f"run-{index:04}", time, tuple(map(float, LEVEL * np.exp(trials)))))
    return tuple(points)
