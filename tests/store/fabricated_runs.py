"""Runs whose figures are chosen, written through the store itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainmark import __version__
from trainmark.measure.doubts import Doubt, DoubtCode
from trainmark.measure.figure import Interval, StepTimes, TrialFigure, Utilisation, Window, WindowVerdict
from trainmark.measure.key import Key
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord, TrialSpec
from trainmark.suite.load import find
from trainmark.suite.model import parse_topology

CREATED = 1_760_000_000.0
ENVIRONMENT = {"host": {"hostname": "bench-1", "system": "Linux"}, "devices": {"gpus": []}}


def figure(throughput: float) -> TrialFigure:
    return TrialFigure(
        throughput=throughput,
        interval=Interval(throughput * 0.99, throughput * 1.01, 0.95),
        unit="images",
        world_size=1,
        window=Window(20, 120, WindowVerdict.SETTLED),
        step_times=StepTimes(0.1, 0.1, 0.11, 0.12, 0.2),
        first_step_seconds=1.5,
        seconds=10.0,
        samples=throughput * 10,
        memory_bytes=3 << 30,
        utilisation=Utilisation(0.4, 1e14, "known"),
        doubts=(Doubt(DoubtCode.DATA_BOUND, "the step waits for data: add loader workers."),),
    )


def record(
    case: str,
    repeat: int,
    throughput: float | None,
    topology: str = "1n1g",
    outcome: str = "crashed",
    framework: str = "pytorch",
) -> TrialRecord:
    """A trial that went well, or one without a figure that ended in `outcome`."""
    shape = parse_topology(topology)
    well = throughput is not None
    return TrialRecord(
        spec=TrialSpec(case, repeat, "OMP_NUM_THREADS=1 python -m train", {"OMP_NUM_THREADS": "1"}, 120, 20),
        key=Key(
            workload="resnet50",
            framework=framework,
            framework_version="2.13.0",
            precision="fp32",
            batch_per_device=32,
            nodes=shape.nodes,
            devices_per_node=shape.devices_per_node,
            device="cpu",
        ),
        outcome="ok" if well else outcome,
        detail="" if well else "rank 0 left with code 1: ValueError: no luck",
        rank=None if well else 0,
        retries=() if well else (f"{outcome}: port taken",),
        started=CREATED + repeat,
        seconds=12.5,
        environment="f1ngerpr1nt",
        figure=figure(throughput) if throughput is not None else None,
    )


BUSY = Doubt(DoubtCode.HOST_BUSY, "Other processes used 90% of the host's CPU time in the window.")


def fabricate_program(
    runs: Path,
    name: str,
    line: str,
    rates: Sequence[float],
    doubts: tuple[Doubt, ...] = (),
    started_by: str = "trainmark run",
    created: float = CREATED,
) -> RunFolder:
    """A run of one's own program, started by a shell's line, with these doubts about every trial."""
    info = RunInfo(
        name, "train", "", created, __version__, f"{started_by} -- {line}", len(rates), len(rates), ()
    )
    run = RunFolder.create(runs / name, info, "cases: []\n")
    for repeat, rate in enumerate(rates, 1):
        spec = TrialSpec("train-1n1g", repeat, f"PYTHONUNBUFFERED=1 sh -c '{line}'", {}, 120, 20)
        base = record("train-1n1g", repeat, rate)
        own = replace(figure(rate), unit="samples", utilisation=None, doubts=doubts)
        keep(
            run,
            replace(base, spec=spec, key=Key("train", device="cpu"), figure=own, started=created + repeat),
        )
    return run


def keep(run: RunFolder, trial_record: TrialRecord) -> Path:
    """Begins and finishes one trial as the runner does; gives its folder."""
    place = run.trial(trial_record.spec.case, trial_record.spec.repeat)
    part = place.begin(trial_record.spec, ENVIRONMENT)
    (part / "logs").mkdir()
    (part / "logs" / "rank0.log").write_text(f"this is trial {trial_record.spec.repeat}\n")
    place.finish(trial_record)
    return place.done


def fabricate(
    runs: Path,
    name: str,
    rates: Mapping[str, Sequence[float | None]] | None = None,
    created: float = CREATED,
    skipped: Sequence[tuple[str, str]] = (),
    framework: str = "pytorch",
) -> RunFolder:
    """A run with a trial for every rate of every topology; a rate of None is a crash."""
    rates = {"1n1g": [100.0, 101.0, 102.0]} if rates is None else rates
    planned = sum(map(len, rates.values()))
    info = RunInfo(
        name=name,
        suite="quick",
        about="Fabricated.",
        created=created,
        version=__version__,
        command="trainmark run quick",
        least=planned,
        most=planned,
        skipped=tuple(skipped),
    )
    run = RunFolder.create(runs / name, info, find("quick").read_text(encoding="utf-8"))
    run.keep_environment(ENVIRONMENT)
    for topology, measured in rates.items():
        for repeat, rate in enumerate(measured, 1):
            case = f"{framework}-fp32-b32-{topology}"
            keep(run, record(case, repeat, rate, topology, framework=framework))
    return run
