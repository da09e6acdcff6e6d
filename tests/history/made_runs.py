"""Runs over months with a chosen throughput, environment and framework version, written through the store."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.measure.figure import StepTimes, TrialFigure, Window, WindowVerdict
from trainmark.measure.key import Key
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord, TrialSpec

FIRST_DAY = 1_767_225_600.0  # 2026-01-01 00:00 UTC
DAY = 86_400.0
KEY = Key("resnet50", "pytorch", "2.9.1", precision="fp32", batch_per_device=32, device="cpu")


@dataclass(frozen=True)
class Day:
    """One run: the level of its trials, and what was recorded."""

    level: float
    version: str = "2.9.1"
    driver: str = "550.54.14"
    commit: str = "a" * 40
    variables: Mapping[str, str] = field(default_factory=dict)
    host: str = "bench-1"
    trials: int = 6


def environment(day: Day) -> dict[str, Any]:
    return {
        "host": {
            "hostname": day.host,
            "kernel": "Linux 6.1.0",
            "memory_bytes": 8 << 30,
            "cpu": {"model": "Xeon", "governor": "performance", "turbo": None},
        },
        "devices": {"driver": day.driver, "gpus": [{"name": "H100", "uuid": "GPU-1", "ecc": True}]},
        "software": {"python": "3.12.1", "packages": {"numpy": "2.1.0"}, "variables": dict(day.variables)},
        "git": {"commit": day.commit, "branch": "main", "dirty": False},
        "container": None,
    }


def figure(throughput: float) -> TrialFigure:
    return TrialFigure(
        throughput=throughput,
        interval=None,
        unit="images",
        world_size=1,
        window=Window(20, 120, WindowVerdict.SETTLED),
        step_times=StepTimes(0.1, 0.1, 0.11, 0.12, 0.2),
        first_step_seconds=1.5,
        seconds=10.0,
        samples=throughput * 10,
    )


def write_run(
    runs: Path, name: str, number: int, day: Day, keys: Sequence[Key] = (KEY,), noise: float = 0.003
) -> RunFolder:
    """Write a run of the given day, which is `number` days after the first."""
    chance = random.Random(f"{name} {number}")
    created = FIRST_DAY + number * DAY
    count = day.trials * len(keys)
    info = RunInfo(name, "quick", "Made.", created, __version__, "trainmark run quick", count, count, ())
    run = RunFolder.create(runs / name, info, "cases: []\n")
    run.keep_environment(environment(day))
    for key in keys:
        own = replace(key, framework_version=day.version)
        case = f"{key.framework}-{key.precision}-b{key.batch_per_device}-{key.topology}"
        for repeat in range(1, day.trials + 1):
            spec = TrialSpec(case, repeat, "python -m train", {"OMP_NUM_THREADS": "1"}, 120, 20)
            place = run.trial(case, repeat)
            place.begin(spec, environment(day))
            place.finish(
                TrialRecord(
                    spec=spec,
                    key=own,
                    outcome="ok",
                    detail="",
                    rank=None,
                    retries=(),
                    started=created + 60 * repeat,
                    seconds=12.5,
                    environment="f1ngerpr1nt",
                    figure=figure(day.level * (1 + chance.gauss(0, noise))),
                )
            )
    return run


def write_days(runs: Path, days: Sequence[Day], keys: Sequence[Key] = (KEY,)) -> list[RunFolder]:
    return [write_run(runs, f"nightly-{number:03d}", number, day, keys) for number, day in enumerate(days)]
