"""Trials by what they measure apart from the topology: the series that a speed-up is told over."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmark.export.source import Measured
from trainmark.measure.key import Key


def without_topology(key: Key) -> Key:
    return replace(key, nodes=1, devices_per_node=1)


def series(trials: Iterable[Measured]) -> dict[Key, list[Measured]]:
    found: dict[Key, list[Measured]] = {}
    for trial in trials:
        found.setdefault(without_topology(trial.record.key), []).append(trial)
    return found


def by_topology(trials: Iterable[Measured]) -> dict[str, list[Measured]]:
    """Fewest devices first, and of equal ones the fewest nodes."""
    found: dict[str, list[Measured]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.record.key.devices, trial.record.key.nodes)):
        found.setdefault(trial.record.key.topology, []).append(trial)
    return found


def median_trial(trials: Sequence[Measured]) -> Measured:
    """The trial with the median throughput, the lower one of two."""
    middle = statistics.median_low(trial.figure.throughput for trial in trials)
    return next(trial for trial in trials if trial.figure.throughput == middle)
