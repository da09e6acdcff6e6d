"""One batch, tried: does a process that trains a few steps with it have the memory?"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainmark.events import Step, stream
from trainmark.home import home
from trainmark.launch.job.job import Job
from trainmark.launch.job.log_tail import tail
from trainmark.launch.job.outcome import Judgement, Outcome, judge
from trainmark.launch.job.watch import Limits, watch
from trainmark.launch.local import LocalLauncher
from trainmark.measure.fit import Try
from trainmark.measure.key import Axes
from trainmark.runner.program.code import keep_code
from trainmark.runner.trial.trial import require_room
from trainmark.typed_json import flattened
from trainmark.workloads import registry
from trainmark.workloads.registry import Family

# The first allots momenta, and libraries choose their algorithms; the second has all of them at once.
STEPS = 4
# A framework may compile for minutes and print nothing meanwhile.
LIMITS = Limits(trial=900.0, silence=600.0)


@dataclass(frozen=True)
class FitCase:
    """Everything that changes which batch fits; `memory` is the device's, `code` the workload's digest.

    `layout` is empty where the workload has no choice of layouts.
    """

    framework: str
    version: str | None
    python: str
    precision: str
    layout: str
    compile: bool
    axes: Axes = field(metadata=flattened())
    device: str
    device_name: str
    memory: int | None
    cap: int | None
    threads: int | None
    code: str
    workload: str = registry.DEFAULT

    @property
    def family(self) -> Family:
        return registry.find(self.workload)

    @property
    def axis_labels(self) -> str:
        labels = {axis.name: axis.label for axis in self.family.workload.axes}
        return " ".join(labels[name].format(value) for name, value in self.axes)

    def __str__(self) -> str:
        """As one line names it: `pytorch fp32 NCHW 224²`."""
        words = [self.framework, self.precision, self.layout, self.axis_labels]
        return " ".join(filter(None, [*words, "compile" if self.compile else ""]))


class FitError(RuntimeError):
    """A try that failed, and not for want of memory; the message says how."""


class StoppedError(FitError):
    """By the user."""

    def __init__(self) -> None:
        super().__init__("stopped; every try is remembered, and the same command goes on from there.")


def arguments(setting: FitCase, batch: int) -> tuple[str, ...]:
    return (
        *("--device", setting.device, "--precision", setting.precision),
        *(("--layout", setting.layout) if setting.layout else ()),
        *(
            word
            for name, value in setting.axes
            for word in (setting.family.workload.axis(name).option, str(value))
        ),
        *("--batch", str(batch), "--steps", str(STEPS)),
        *(("--compile", "default") if setting.compile else ()),
        *(("--memory-cap", str(setting.cap)) if setting.cap else ()),
    )


def tried(setting: FitCase, batch: int, stop_asked: Callable[[], bool]) -> Try:
    """FitError where it says nothing about memory."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        folder = Path(made)
        keep_code(folder / "code", [setting.family])
        words = ("-u", "-m", setting.family.module(setting.framework), *arguments(setting, batch))
        job = Job(
            command=(setting.python, *words),
            environment=_environment(folder / "code", setting.threads),
            working_folder=folder,
            folder=folder,
            nodes=1,
            ranks_per_node=1,
        )
        ending = watch(LocalLauncher().start(job), job, LIMITS, stop_asked, lambda: None)
        judgement = judge(ending, {0: tail(job.log(0))})
        if judgement.outcome is Outcome.INTERRUPTED:
            raise StoppedError
        require_room(folder)
        fits = judgement.outcome is Outcome.OK
        if not fits and judgement.outcome is not Outcome.OOM:
            raise FitError(_failure(setting, batch, judgement, job))
        peak = _peak(job) if fits else None
        return Try(batch, fits, peak, round(ending.seconds, 1), "" if fits else judgement.detail)


def _peak(job: Job) -> int | None:
    """None where the framework cannot tell."""
    steps = (event for event in stream.read(job.events(0)) if isinstance(event, Step))
    return max((step.memory for step in steps if step.memory is not None), default=None)


def _failure(setting: FitCase, batch: int, judgement: Judgement, job: Job) -> str:
    log = home() / "fit" / f"{setting.framework}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(job.log(0), log)
    end = f"{judgement.outcome.value}: {judgement.detail}"
    return f"{setting} at batch {batch} failed, and not for want of memory ({end}); its log is {log}."


def _environment(code: Path, threads: int | None) -> dict[str, str]:
    path = [str(code), os.environ.get("PYTHONPATH")]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}
    return variables | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
