"""Trials by what they measure apart from the topology: the series that a speed-up is told over."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmark.measure.key import Key
from trainmark.report.export.source import Measured


def without_topology(key: Key) -> Key:
    return replace(key, nodes=1, devices_per_node=1)


def series(trials: Iterable[Measured]) -> dict[Key, list[Measured]]:
    groups: dict[Key, list[Measured]] = {}
    for trial in trials:
        groups.setdefault(without_topology(trial.record.key), []).append(trial)
    return groups


def by_topology(trials: Iterable[Measured]) -> dict[str, list[Measured]]:
    """Fewest devices first, and of equal ones the fewest nodes."""
    groups: dict[str, list[Measured]] = {}
    for trial in sorted(trials, key=lambda trial: (trial.record.key.devices, trial.record.key.nodes)):
        groups.setdefault(trial.record.key.topology, []).append(trial)
    return groups


def median_trial(trials: Sequence[Measured]) -> Measured:
    """That of the median time to train where all have one, else of the median throughput; the lower one."""
    finishes = [trial.figure.finish for trial in trials]
    times = [finish.time2train for finish in finishes if finish and finish.time2train is not None]
    figures = times if len(times) == len(trials) else [trial.figure.throughput for trial in trials]
    return trials[figures.index(statistics.median_low(figures))]
