"""A run of many trials that never ran: written through the store, so that it reads like a real one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

from trainmark import __version__
from trainmark.events import DeviceSample, RunEnd, RunStart, Step, stream
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import SAMPLES, TrialRecord, TrialSpec

STEPS, WARMUP_STEPS, STEP_SECONDS = 30, 5, 0.05
WRITERS = 32
ENVIRONMENT = {"host": {"cpu": "generated", "cores": 64}, "software": {"framework": "2.13.0"}}


def write_run(runs: Path, cases: int, repeats: int) -> RunFolder:
    count = cases * repeats
    info = RunInfo("generated", "generated", "", 1.7e9, __version__, "trainmark run", count, count, ())
    run = RunFolder.create(runs / "generated", info, suite="name: generated\n")
    run.keep_environment(ENVIRONMENT)
    events = list(_events())
    figure = measure_trial(trace_of(events), WindowRules(WARMUP_STEPS))
    files = {"events/rank0.jsonl": _lines(events), SAMPLES: _lines(_samples())}
    chance = random.Random(0)
    # The store waits for the disk after each file; many writers wait together.
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [
            pool.submit(_write_trial, run, key, repeat, _varied(figure, key, chance), files)
            for key, repeat in product(_keys(cases), range(1, repeats + 1))
        ]
    for written in writing:
        written.result()
    return run


def _write_trial(run: RunFolder, key: Key, repeat: int, figure: TrialFigure, files: dict[str, str]) -> None:
    case = f"{key.framework}-{key.precision}-b{key.batch_per_device}-{key.topology}"
    command = f"python -m workload --batch {key.batch_per_device} --precision {key.precision}"
    spec = TrialSpec(case, repeat, command, {"OMP_NUM_THREADS": "8"}, STEPS, WARMUP_STEPS)
    place = run.trial(case, repeat)
    folder = place.begin(spec, ENVIRONMENT)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    place.finish(TrialRecord(spec, key, "ok", "", None, (), 1.7e9, 9.0, "generated", figure))


def _keys(cases: int) -> Iterator[Key]:
    """Scaling series of five topologies each, as many as are wanted."""
    axes = product(
        (f"framework{number:02d}" for number in range(cases)),
        ("fp32", "amp", "bf16", "tf32"),
        (64, 128),
        ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8)),
    )
    for _, (framework, precision, batch, (nodes, devices)) in zip(range(cases), axes, strict=False):
        yield Key(
            workload="resnet50",
            framework=framework,
            framework_version="1.0",
            precision=precision,
            batch_per_device=batch,
            nodes=nodes,
            devices_per_node=devices,
            device="generated",
        )


def _events() -> Iterator[RunStart | Step | RunEnd]:
    yield RunStart(0, 1, 1000.0, 1.7e9, unit="images", facts={"framework": "generated"})
    for number in range(STEPS):
        after = STEP_SECONDS * (number + 1)
        yield Step(0, number, 1000.0 + after, 1.7e9 + after, 256, 6.9 - number / 100, 0.1, 1e-4, 2**34)
    yield RunEnd(0, 1000.0 + after, 1.7e9 + after)


def _samples() -> Iterator[DeviceSample]:
    for number in range(10):
        yield DeviceSample("gpu0", 1000.0 + number / 2, 1.7e9 + number / 2, 0.98, 2**34, 650.0, 61.0, 1980.0)


def _lines(events: Iterator[DeviceSample] | list[RunStart | Step | RunEnd]) -> str:
    return "".join(stream.encode(event) + "\n" for event in events)


def _varied(figure: TrialFigure, key: Key, chance: random.Random) -> TrialFigure:
    """Scaled to the devices of its case, each trial a little off."""
    factor = key.devices**0.97 * chance.gauss(1.0, 0.005)
    return replace(figure, throughput=figure.throughput * factor, world_size=key.devices)
