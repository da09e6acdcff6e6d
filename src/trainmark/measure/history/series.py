"""A case's results over time: one point a run, one series a case and machine."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from trainmark.measure.figure import Interval
from trainmark.measure.key import Key
from trainmark.measure.statistics import median_interval

# The facts that results can be ordered by, by the word of the command line.
ORDER_FACTS = {"commit": "commit", "version": "framework_version", "driver": "driver"}
# Quantities that were sampled during the trial: never twice the same.
MEASURED_FACTS = ("clock_mhz", "temperature_c", "power_watts")
DATE = "date"
SEPARATOR = " / "


@dataclass(frozen=True)
class RunPoint:
    """One result: the trials of a case in one run.

    `values` are the throughputs of its trials in samples a second; `facts` are what was recorded of the
    machine and the software, under flat names.
    """

    run: str
    time: float
    values: tuple[float, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    median: float = field(init=False, repr=False, compare=False)
    interval: Interval | None = field(init=False, repr=False, compare=False)
    """The interval of the median from order statistics; None for a single trial."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "median", statistics.median(self.values))
        object.__setattr__(self, "interval", median_interval(self.values))


@dataclass(frozen=True)
class TrialObservation:
    """One trial that has a figure, as a store or a database keeps it."""

    run: str
    time: float
    key: Key
    machine: str
    unit: str
    throughput: float
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class HistorySeries:
    """All results of a case on one machine, the oldest first; `key` has no framework version.

    `command` is that of one's own program, whose settings no key holds; empty for a built-in workload.
    """

    key: Key
    machine: str
    unit: str
    points: tuple[RunPoint, ...]
    command: str = ""

    @property
    def id(self) -> str:
        """Sixteen hex digits of the case and the machine, for addresses; the host name is not in them."""
        identity = [self.key.values(), self.machine, self.unit, *filter(None, [self.command])]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


@lru_cache(maxsize=4096)
def case_of(key: Key) -> Key:
    """Return what a history is of: the key without the framework's version, which may change over time."""
    return replace(key, framework_version=None)


def series_of(observations: Iterable[TrialObservation]) -> tuple[HistorySeries, ...]:
    """Group trials into points (a run and a framework version) and points into series, in order of time."""
    lines: dict[tuple[Key, str, str, str], dict[tuple[str, str | None], list[TrialObservation]]] = {}
    for trial in observations:
        # A framework is named by built-in workloads alone; its settings are all in the key.
        command = trial.facts.get("command", "") if trial.key.framework is None else ""
        line = lines.setdefault((case_of(trial.key), trial.machine, trial.unit, command), {})
        line.setdefault((trial.run, trial.key.framework_version), []).append(trial)
    return tuple(
        HistorySeries(
            key,
            machine,
            unit,
            tuple(sorted(map(point_of, line.values()), key=lambda point: point.time)),
            command,
        )
        for (key, machine, unit, command), line in lines.items()
    )


def point_of(trials: Sequence[TrialObservation]) -> RunPoint:
    """Return the result of trials that repeat one case in one run."""
    ordered = sorted(trials, key=lambda trial: trial.time)
    return RunPoint(
        run=ordered[0].run,
        time=ordered[0].time,
        values=tuple(trial.throughput for trial in ordered),
        facts=_common_facts([trial.facts for trial in ordered]),
        doubts=_common_doubts([trial.doubts for trial in ordered]),
    )


def _common_facts(recorded: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Return the facts of all trials; where they differ, the median or the distinct values."""
    first = recorded[0]
    if all(facts is first or facts == first for facts in recorded):
        return first
    names = dict.fromkeys(name for facts in recorded for name in facts)
    return {name: _common(name, [facts[name] for facts in recorded if name in facts]) for name in names}


def _common(name: str, values: Sequence[str]) -> str:
    if name in MEASURED_FACTS:
        return f"{statistics.median(map(float, values)):g}"
    return SEPARATOR.join(dict.fromkeys(values))


def _common_doubts(codes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the doubts that half of the trials have at least."""
    counts: dict[str, int] = {}
    for code in (code for own in codes for code in dict.fromkeys(own)):
        counts[code] = counts.get(code, 0) + 1
    return tuple(code for code, count in counts.items() if 2 * count >= len(codes))


def ordered_by(
    series: HistorySeries, by: str, ranks: Mapping[str, int] | None = None
) -> tuple[HistorySeries, int]:
    """Return the series in the order of a recorded fact, and how many results lack it and are left out.

    Versions and drivers stand in the order of versions; commits in that of `ranks` (by their place in the
    repository) and without it in the order in which they were first measured.
    """
    if by == DATE:
        return series, 0
    fact = ORDER_FACTS[by]
    known = [point for point in series.points if point.facts.get(fact)]
    if by == "commit":
        places = _commit_places([point.facts[fact] for point in known], ranks or {})
        known.sort(key=lambda point: (places[point.facts[fact]], point.time))
    else:
        known.sort(key=lambda point: (version_key(point.facts[fact]), point.time))
    return replace(series, points=tuple(known)), len(series.points) - len(known)


def _commit_places(commits: Iterable[str], ranks: Mapping[str, int]) -> dict[str, int]:
    """Return the place of each commit: before those of the repository stand those that it does not know."""
    unknown = dict.fromkeys(commit for commit in commits if commit not in ranks)
    return {**{commit: place - len(unknown) for place, commit in enumerate(unknown)}, **ranks}


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key by which versions sort: 2.9.1 before 2.13.0, 2.13.0rc1 before 2.13.0."""
    release, _, local = version.partition("+")
    parts = re.findall(r"\d+|[A-Za-z]+", release)
    numbered = [(1, int(part), "") if part.isdigit() else (-1, 0, part) for part in parts]
    return (*numbered, (0, 0, local))


def since(series: HistorySeries, time: float) -> HistorySeries:
    """Return the series without the results from before a time."""
    return replace(series, points=tuple(point for point in series.points if point.time >= time))
