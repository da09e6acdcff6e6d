"""The trials of run folders as observations of a history."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmark.base.files import open_regular, read_regular
from trainmark.measure.history.facts import (
    command_fact,
    environment_facts,
    framework_facts,
    machine_of,
    variable_facts,
)
from trainmark.measure.history.series import (
    MEASURED_FACTS,
    HistorySeries,
    RunPoint,
    TrialObservation,
    point_of,
    series_of,
)
from trainmark.measure.key import Key
from trainmark.store.run import RunFolder
from trainmark.store.trial import ENVIRONMENT, SAMPLES, TrialRecord

LARGEST_ENVIRONMENT_BYTES = 16 << 20
# The first so many bytes of a trial's samples tell its median clock.
MOST_SAMPLE_BYTES = 1 << 20
MEASURED = {name: re.compile(rb'"' + name.encode() + rb'":\s*(\d+(?:\.\d+)?)') for name in MEASURED_FACTS}
MEASURED_DIGITS = 4

Recorded = tuple[str, Mapping[str, str]]


def series_of_runs(runs: Sequence[RunFolder]) -> tuple[HistorySeries, ...]:
    """Return the series of all cases that have a figure in one of these runs."""
    environments: dict[bytes, Recorded] = {}
    named = zip(runs, run_names(runs), strict=True)
    return series_of(trial for run, name in named for trial in observations(run, name, environments))


def points_of(run: RunFolder) -> dict[Key, RunPoint]:
    """Return each result of a run by its key, with what was recorded of it."""
    trials: dict[Key, list[TrialObservation]] = {}
    for trial in observations(run, run.path.name, {}):
        trials.setdefault(trial.key, []).append(trial)
    return {key: point_of(own) for key, own in trials.items()}


def run_names(runs: Sequence[RunFolder]) -> list[str]:
    """Return the name of each run; where folders of several machines have the same one, its path."""
    counts = Counter(run.path.name for run in runs)
    return [run.path.name if counts[run.path.name] == 1 else str(run.path) for run in runs]


def observations(
    run: RunFolder, name: str, environments: dict[bytes, Recorded]
) -> Iterator[TrialObservation]:
    """Yield the trials of a run that have a figure; equal environments are read once for all runs."""
    reports, version = run.facts, run.info.version
    for record in run.records():
        if record.figure is None:
            continue
        folder = run.trial(record.spec.case, record.spec.repeat).done
        machine, recorded = _environment(folder / ENVIRONMENT, environments)
        yield TrialObservation(
            run=name,
            time=record.started or run.info.created,
            key=record.key,
            machine=machine,
            unit=record.figure.unit,
            throughput=record.figure.throughput,
            facts={
                **recorded,
                **_own_facts(run, record, reports, version),
                **measured_facts(folder / SAMPLES),
            },
            doubts=tuple(doubt.code.value for doubt in record.figure.doubts),
        )


def _own_facts(
    run: RunFolder, record: TrialRecord, reports: Mapping[str, Any], version: str
) -> dict[str, str]:
    reported = reports.get(record.spec.case)
    facts = framework_facts(reported) if isinstance(reported, Mapping) else {}
    if record.key.framework_version:
        facts["framework_version"] = record.key.framework_version
    return {
        **facts,
        **variable_facts(record.spec.environment),
        **command_fact(record.spec.command, run.path.name),
        "steps": str(record.spec.steps),
        "warmup_steps": str(record.spec.warmup_steps),
        "trainmark": version,
    }


def _environment(path: Path, known: dict[bytes, Recorded]) -> Recorded:
    """Return the machine and the facts of an environment file; nothing of one that cannot be read."""
    try:
        content = read_regular(path, LARGEST_ENVIRONMENT_BYTES)
    except OSError:
        return "", {}
    if content not in known:
        try:
            environment = json.loads(content)
        except (ValueError, RecursionError):
            environment = {}
        plain = environment if isinstance(environment, dict) else {}
        known[content] = machine_of(plain), environment_facts(plain)
    return known[content]


def measured_facts(samples: Path) -> dict[str, str]:
    """Return the median clock, temperature and power of the devices during a trial, where sampled."""
    try:
        with open_regular(samples) as file:
            content = file.read(MOST_SAMPLE_BYTES)
    except OSError:
        return {}
    facts = {}
    for name, pattern in MEASURED.items():
        numbers = [float(text) for text in pattern.findall(content)]
        if numbers:
            facts[name] = f"{statistics.median(numbers):.{MEASURED_DIGITS}g}"
    return facts
