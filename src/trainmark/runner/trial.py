"""One trial from start to figure: launch, watch, judge, read, measure, keep."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.events import DeviceSample, Event, RunStart, stream
from trainmark.launch.job import Job, Launcher, Loss
from trainmark.launch.log_tail import tail
from trainmark.launch.node import NodeError
from trainmark.launch.outcome import Cause, Ending, Judgement, Outcome, judge
from trainmark.launch.secret import without_secrets
from trainmark.launch.watch import Limits, watch
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import Rules, measure_trial
from trainmark.readers.registry import reader
from trainmark.readers.trials.output import Output
from trainmark.runner.command import checkpoints_of, job_of
from trainmark.runner.display import Display
from trainmark.runner.follow import Follower
from trainmark.runner.identity import key_of
from trainmark.runner.node_failures import NodeFailures
from trainmark.store.run import RunFolder
from trainmark.store.trial import SAMPLES, TrialRecord, TrialSpec
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Trial
from trainmark.system.available import known_peak_flops
from trainmark.system.sampler import Sampler

# Less than this and a trial cannot even leave its record.
ROOM_BYTES = 1 << 20


@dataclass(frozen=True)
class Bench:
    """What all trials of a run share."""

    run: RunFolder
    launcher: Launcher
    nodes: NodeFailures
    environment: Mapping[str, Any]
    fingerprint: str
    device: str
    gpus: Sequence[int]
    facts: Mapping[str, Mapping[str, Any]]
    suite_folder: str | None
    seed: int
    display: Display
    stop_asked: Callable[[], bool]


def run_trial(trial: Trial, bench: Bench) -> TrialRecord:
    """Tries again after transient ends only, and says so; the last attempt is the trial."""
    place = bench.run.trial(trial.case.slug, trial.repeat)

    def set_aside(reason: str) -> None:
        """Unless the training can go on from what it kept: then the next attempt does, in the same folder."""
        if not goes_on(trial.case, place.part):
            place.set_aside(place.part, reason)

    if place.part.exists():  # a harness that was killed left it
        set_aside(Outcome.INTERRUPTED.value)
    retries: list[str] = []
    while True:
        record, judgement = _attempt(trial, bench, tuple(retries))
        if judgement.outcome is not Outcome.OK:
            require_room(place.part)
        if judgement.outcome is Outcome.INTERRUPTED:
            set_aside(Outcome.INTERRUPTED.value)
            return record
        again = judgement.transient and len(retries) < trial.case.rules.retries
        if judgement.outcome is Outcome.LOST:
            again = bench.nodes.lost(judgement.node, trial.case.topology.nodes, bench.display.note)
        if not again:
            if judgement.outcome is Outcome.OK:
                shutil.rmtree(checkpoints_of(trial.case, place.part.absolute()), ignore_errors=True)
            place.finish(record)
            return record
        bench.display.note(f"{trial.id}: {judgement.detail}; trying again")
        set_aside(judgement.outcome.value)
        retries.append(f"{judgement.outcome.value}: {judgement.detail}")


def goes_on(case: Case, part: Path) -> bool:
    """Whether a trial that was cut short has a checkpoint to go on from."""
    return case.course is not None and any(checkpoints_of(case, part.absolute()).glob("step-*"))


def _attempt(trial: Trial, bench: Bench, retries: tuple[str, ...]) -> tuple[TrialRecord, Judgement]:
    case, place = trial.case, bench.run.trial(trial.case.slug, trial.repeat)
    seed = bench.seed + trial.repeat - 1
    job = job_of(case, place.part.absolute(), bench.run.code.absolute(), bench.suite_folder, seed)
    place.begin(spec_of(trial, job), bench.environment)
    started = time.time()
    ending = _carry_out(job, case, bench)
    return record_of(trial, job, ending, bench, started, retries)


def spec_of(trial: Trial, job: Job) -> TrialSpec:
    return TrialSpec(
        case=trial.case.slug,
        repeat=trial.repeat,
        command=job.shell(),
        environment=without_secrets(job.environment),
        steps=trial.case.rules.steps,
        warmup_steps=trial.case.rules.warmup_steps,
    )


def record_of(
    trial: Trial, job: Job, ending: Ending, bench: Bench, started: float, retries: tuple[str, ...] = ()
) -> tuple[TrialRecord, Judgement]:
    """What became of a trial that is over, from its ending and its folder."""
    case = trial.case
    key = key_of(case, bench.device, bench.facts.get(case.slug, {}))
    judgement = judge(ending, {rank: tail(job.log(rank)) for rank in range(job.world_size)})
    figure = None
    if judgement.outcome is Outcome.OK:
        try:
            figure = figure_of(case, key, job.folder)
        except (ValueError, OverflowError) as error:  # whatever a program left: one bad trial, not a bad run
            judgement = Judgement(Outcome.INVALID, None, str(error))
    record = TrialRecord(
        spec=spec_of(trial, job),
        key=key,
        outcome=judgement.outcome.value,
        detail=judgement.detail,
        rank=judgement.rank,
        retries=retries,
        started=started,
        seconds=ending.seconds,
        environment=bench.fingerprint,
        figure=figure,
        node=judgement.node,
    )
    return record, judgement


def _carry_out(job: Job, case: Case, bench: Bench) -> Ending:
    """OSError where what the ranks printed could not be kept, as on a full disk."""
    follower = Follower(job.events(0), job.world_size)

    def tick() -> None:
        follower.look()
        bench.display.progress(follower.steps, follower.rate, follower.training)

    began = time.monotonic()
    try:
        session = bench.launcher.start(job)
    except NodeError as error:
        loss = Loss(error.node, error.reason)
        return Ending(Cause.NODE_LOST, {}, None, time.monotonic() - began, loss=loss)
    limits = Limits(case.rules.trial_limit, case.rules.silence_limit)
    used = bench.gpus[: job.ranks_per_node] if case.device == "cuda" else ()
    # What this machine does while others train says nothing of the trial.
    here = session.root_pid is not None
    samples = Sampler(job.folder / SAMPLES, root_pid=session.root_pid, device_indices=used)
    with samples if here else contextlib.nullcontext():
        ending = watch(session, job, limits, bench.stop_asked, tick)
    if session.lost_output is not None:
        raise session.lost_output
    return ending


def require_room(folder: Path) -> None:
    """What fails on a full disk says nothing of the program: the run stops there, and can be resumed."""
    if shutil.disk_usage(folder).free < ROOM_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def figure_of(case: Case, key: Key, folder: Path) -> TrialFigure:
    """The figure of a finished trial, from nothing but its folder."""
    command = case.workload if isinstance(case.workload, Command) else None
    output = Output(
        folder=folder,
        world_size=case.topology.devices,
        batch_per_device=case.batch_per_device,
        unit=command.unit if command else "images",
        pattern=command.pattern if command else None,
    )
    events: Iterable[Event] = reader(command.reader if command else "probe")(output)
    if command and command.reader != "probe":
        events = list(events)
        keep_events(folder, events)
    trace = trace_of(events)
    samples = [event for event in _samples(folder / SAMPLES) if isinstance(event, DeviceSample)]
    return measure_trial(
        trace,
        Rules(warmup_steps=_warmup_steps(case, len(trace.ends))),
        key=key,
        samples=samples,
        flops_per_sample=trace.facts.get("flops_per_sample"),
        known_peak_flops=known_peak_flops(key.device or "", case.precision or ""),
    )


def _warmup_steps(case: Case, steps: int) -> int:
    """Of a training to a finish line no more than half: it may have crossed it soon."""
    return min(case.rules.warmup_steps, steps // 2) if case.course else case.rules.warmup_steps


def keep_events(folder: Path, events: Sequence[Event]) -> None:
    """What another reader found becomes the trial's own stream; nobody asks later where it came from."""
    for rank in {event.rank for event in events if isinstance(event, RunStart)}:
        own = (event for event in events if not isinstance(event, DeviceSample) and event.rank == rank)
        stream.write(folder / "events" / f"rank{rank}.jsonl", own)


def _samples(path: Path) -> list[Any]:
    return list(stream.read(path)) if path.exists() else []
