"""One trial from start to figure: launch, watch, judge, read, measure, keep."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmark.base.secrets import scrub_text, without_secrets
from trainmark.events import DeviceSample, Event, RunStart, stream
from trainmark.launch.job import Job, Launcher, NodeLoss
from trainmark.launch.nodes import NodeError
from trainmark.launch.outcome import EndCause, JobEnd, JobOutcome, Outcome, outcome_of, tail
from trainmark.launch.watch import TrialLimits, watch
from trainmark.logs.trials.auto import reader
from trainmark.logs.trials.output import Output
from trainmark.machine.sampler import Sampler
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.utilisation import NO_COUNTS, FlopCounts
from trainmark.runner.cluster import NodeFailures
from trainmark.runner.command import checkpoints_of, job_of, key_of, profiled
from trainmark.runner.interrupts import StoppedError, time_limit
from trainmark.runner.progress import Follower, RunDisplay
from trainmark.runner.quiet import QuietWait
from trainmark.store.identity import SCHEMA, run_uuid, trial_uuid
from trainmark.store.recompute import figure_of_folder
from trainmark.store.run import RunFolder
from trainmark.store.scrubbing import scrub_events
from trainmark.store.trial import EVENTS, SAMPLES, TrialRecord, TrialSpec
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import PlannedTrial

# Reading what the ranks left may take what is left of the trial's limit, and this long in any case.
READING_SECONDS = 60.0
# Less than this and a trial cannot even leave its record.
ROOM_BYTES = 1 << 20


@dataclass(frozen=True)
class RunContext:
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
    display: RunDisplay
    stop_asked: Callable[[], bool]
    interruptible: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """Within it a user who stops the run cuts work short that cannot ask."""
    profile_steps: int = 0
    """Steps that each trial takes under the profiler after the measured ones."""
    quiet: QuietWait = field(default_factory=lambda: QuietWait(0.0))
    """How long trials may wait for a quiet machine."""


def run_trial(trial: PlannedTrial, context: RunContext) -> TrialRecord:
    """Tries again after transient ends only, and says so; the last attempt is the trial."""
    place = context.run.trial(trial.case.slug, trial.repeat)

    def set_aside(reason: str) -> None:
        """Unless the training can go on from what it kept: then the next attempt does, in the same folder."""
        if not goes_on(trial.case, place.part):
            place.set_aside(place.part, reason)

    if place.part.exists():  # a harness that was killed left it
        set_aside(Outcome.INTERRUPTED.value)
    retries: list[str] = []
    while True:
        record, judgement = _attempt(trial, context, tuple(retries))
        if judgement.outcome is not Outcome.OK:
            require_room(place.part)
        if judgement.outcome is Outcome.INTERRUPTED:
            set_aside(Outcome.INTERRUPTED.value)
            return record
        again = judgement.transient and len(retries) < trial.case.rules.retries
        if judgement.outcome is Outcome.LOST:
            again = context.nodes.lost(judgement.node, trial.case.topology.nodes, context.display.note)
        if not again:
            if judgement.outcome is Outcome.OK:
                shutil.rmtree(checkpoints_of(trial.case, place.part.absolute()), ignore_errors=True)
            place.finish(record)
            return record
        context.display.note(f"{trial.id}: {judgement.detail}; trying again")
        set_aside(judgement.outcome.value)
        retries.append(f"{judgement.outcome.value}: {judgement.detail}")


def goes_on(case: Case, part: Path) -> bool:
    """Whether a trial that was cut short has a checkpoint to go on from."""
    return case.course is not None and any(checkpoints_of(case, part.absolute()).glob("step-*"))


def _attempt(
    trial: PlannedTrial, context: RunContext, retries: tuple[str, ...]
) -> tuple[TrialRecord, JobOutcome]:
    case, place = trial.case, context.run.trial(trial.case.slug, trial.repeat)
    seed = context.seed + trial.repeat - 1
    job = job_of(case, place.part.absolute(), context.run.code.absolute(), context.suite_folder, seed)
    if context.profile_steps:
        job = profiled(job, context.profile_steps)
    started = time.time()
    place.begin(spec_of(trial, job, context, started), context.environment)
    ending = _carry_out(job, case, context)
    scrub_events(place.part)
    return record_of(trial, job, ending, context, started, retries, lasted=ending.seconds)


def spec_of(trial: PlannedTrial, job: Job, context: RunContext, started: float) -> TrialSpec:
    return TrialSpec(
        case=trial.case.slug,
        repeat=trial.repeat,
        command=scrub_text(job.shell()),
        environment=without_secrets(job.environment),
        steps=trial.case.rules.steps,
        warmup_steps=trial.case.rules.warmup_steps,
        key=key_of(trial.case, context.device, context.facts.get(trial.case.slug, {})),
        started=started,
        fingerprint=context.fingerprint,
        uuid=trial_uuid(run_uuid(context.run.info), trial.case.slug, trial.repeat, started),
        schema=SCHEMA,
    )


def record_of(
    trial: PlannedTrial,
    job: Job,
    ending: JobEnd,
    context: RunContext,
    started: float,
    retries: tuple[str, ...] = (),
    lasted: float | None = None,
) -> tuple[TrialRecord, JobOutcome]:
    """What became of a trial that is over, from its ending and its folder.

    `lasted` is how long it took by our own clock, where that was watched.
    """
    case, spec = trial.case, spec_of(trial, job, context, started)
    key = spec.key or key_of(case, context.device, context.facts.get(case.slug, {}))
    judgement = outcome_of(ending, {rank: tail(job.log(rank)) for rank in range(job.world_size)})
    figure = None
    if judgement.outcome is Outcome.OK:
        limit = max(READING_SECONDS, case.rules.trial_limit - ending.seconds)
        try:
            with context.interruptible(), time_limit(limit):
                figure = figure_of(case, key, job.folder, lasted)
        except StoppedError as stopped:
            outcome = Outcome.TIMEOUT if stopped.time_up else Outcome.INTERRUPTED
            judgement = JobOutcome(outcome, None, f"while its events were read, {stopped}")
        # Whatever a program left behind: one bad trial, not a bad run.
        except Exception as error:  # noqa: BLE001
            own = isinstance(error, (ValueError, OSError))
            detail = str(error) if own else f"its events cannot be measured: {error!r}"
            judgement = JobOutcome(Outcome.INVALID, None, detail)
    if figure is not None and job.starts_own_ranks:
        key = replace(key, devices_per_node=max(1, figure.world_size // key.nodes))
        detail = " ".join(filter(None, (judgement.detail, _unheard(case, figure))))
        judgement = replace(judgement, detail=detail)
    record = TrialRecord(
        spec=spec,
        key=key,
        outcome=judgement.outcome.value,
        detail=scrub_text(judgement.detail),
        rank=judgement.rank,
        retries=retries,
        started=started,
        seconds=ending.seconds,
        environment=context.fingerprint,
        figure=figure,
        node=judgement.node,
    )
    return record, judgement


def _unheard(case: Case, figure: TrialFigure) -> str:
    """A sentence where a program went on after the steps asked for: who reads its log cannot end it."""
    asked = case.workload.steps if isinstance(case.workload, Command) else None
    if not isinstance(asked, int) or figure.window.stop <= asked + case.rules.warmup_steps:
        return ""
    return (
        f"--steps {asked} did not end it: the hooks saw no step, and those measured are of "
        f"{figure.step_source or 'the probe'}."
    )


def _carry_out(job: Job, case: Case, context: RunContext) -> JobEnd:
    """OSError where what the ranks printed could not be kept, as on a full disk."""
    follower = Follower(job.events(0), job.world_size)

    def tick() -> None:
        follower.look()
        context.display.progress(follower.steps, follower.rate, follower.training)

    began = time.monotonic()
    try:
        session = context.launcher.start(job)
    except NodeError as error:
        loss = NodeLoss(error.node, error.reason)
        return JobEnd(EndCause.NODE_LOST, {}, None, time.monotonic() - began, loss=loss)
    limits = TrialLimits(case.rules.trial_limit, case.rules.silence_limit)
    used = context.gpus if job.starts_own_ranks else context.gpus[: job.ranks_per_node] if job.gpus else ()
    # What this machine does while others train says nothing of the trial.
    here = session.root_pid is not None
    samples = Sampler(job.folder / SAMPLES, root_pid=session.root_pid, device_indices=used)
    with samples if here else contextlib.nullcontext():
        ending = watch(session, job, limits, context.stop_asked, tick)
    if session.lost_output is not None:
        raise session.lost_output
    return ending


def require_room(folder: Path) -> None:
    """What fails on a full disk says nothing of the program: the run stops there, and can be resumed."""
    if shutil.disk_usage(folder).free < ROOM_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def figure_of(case: Case, key: Key, folder: Path, lasted: float | None = None) -> TrialFigure:
    """The figure of a finished trial; what another reader finds in its logs becomes its events first."""
    command = case.workload if isinstance(case.workload, Command) else None
    output = Output(
        folder=folder,
        world_size=case.topology.devices,
        batch_per_device=case.batch_per_device,
        unit=command.unit if command else case.family.workload.unit,
        pattern=command.pattern if command else None,
        samples_per_step=command.samples_per_step if command else None,
    )
    if command and command.reader != "probe":
        keep_events(folder, list(reader(command.reader)(output)))
    return figure_of_folder(folder, key, case.rules.warmup_steps, lasted, declared=_declared_counts(case))


def _declared_counts(case: Case) -> FlopCounts:
    """Return the FLOP counts that a family declares beside those that its programs report."""
    if isinstance(case.workload, Command):
        return NO_COUNTS
    workload, axes = case.family.workload, dict(case.axes)
    return FlopCounts(
        hardware=workload.hardware_flops(axes) if workload.hardware_flops else None,
        conventions=workload.conventions(axes) if workload.conventions else {},
    )


def keep_events(folder: Path, events: Sequence[Event]) -> None:
    """What another reader found becomes the trial's own stream; nobody asks later where it came from."""
    for rank in {event.rank for event in events if isinstance(event, RunStart)}:
        own = (event for event in events if not isinstance(event, DeviceSample) and event.rank == rank)
        stream.write(folder / EVENTS / f"rank{rank}.jsonl", own)
