"""One batch, tried: does a process that trains a few steps with it have the memory?"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainmark.environments.place import home
from trainmark.events import Step, stream
from trainmark.launch.job import Job
from trainmark.launch.local import LocalLauncher
from trainmark.launch.log_tail import tail
from trainmark.launch.outcome import Judgement, Outcome, judge
from trainmark.launch.watch import Limits, watch
from trainmark.measure.fit import Try
from trainmark.runner.code import keep_code
from trainmark.runner.trial import require_room
from trainmark.suite.workloads import module

WORKLOAD = "resnet50"
# The first allots momenta, and libraries choose their algorithms; the second has all of them at once.
STEPS = 4
# A framework may compile for minutes and print nothing meanwhile.
LIMITS = Limits(trial=900.0, silence=600.0)


@dataclass(frozen=True)
class Setting:
    """Everything that changes which batch fits; `memory` is the device's, `code` the workload's digest."""

    framework: str
    version: str | None
    python: str
    precision: str
    layout: str
    compile: bool
    image_size: int
    device: str
    device_name: str
    memory: int | None
    cap: int | None
    threads: int | None
    code: str

    def __str__(self) -> str:
        """As one line names it: `pytorch fp32 NCHW 224²`."""
        words = [self.framework, self.precision, self.layout, f"{self.image_size}²"]
        return " ".join([*words, *(["compile"] if self.compile else [])])


class FitError(RuntimeError):
    """A try that failed, and not for want of memory; the message says how."""


class StoppedError(FitError):
    """By the user."""

    def __init__(self) -> None:
        super().__init__("stopped; every try is remembered, and the same command goes on from there.")


def arguments(setting: Setting, batch: int) -> tuple[str, ...]:
    return (
        *("--device", setting.device, "--precision", setting.precision, "--layout", setting.layout),
        *("--image-size", str(setting.image_size), "--batch", str(batch), "--steps", str(STEPS)),
        *(("--compile", "default") if setting.compile else ()),
        *(("--memory-cap", str(setting.cap)) if setting.cap else ()),
    )


def tried(setting: Setting, batch: int, stop_asked: Callable[[], bool]) -> Try:
    """FitError where it says nothing about memory."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        folder = Path(made)
        keep_code(folder / "code")
        words = ("-u", "-m", module(WORKLOAD, setting.framework), *arguments(setting, batch))
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
            raise FitError(_told(setting, batch, judgement, job))
        peak = _peak(job) if fits else None
        return Try(batch, fits, peak, round(ending.seconds, 1), "" if fits else judgement.detail)


def _peak(job: Job) -> int | None:
    """None where the framework cannot tell."""
    steps = (event for event in stream.read(job.events(0)) if isinstance(event, Step))
    return max((step.memory for step in steps if step.memory is not None), default=None)


def _told(setting: Setting, batch: int, judgement: Judgement, job: Job) -> str:
    log = home() / "fit" / f"{setting.framework}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(job.log(0), log)
    end = f"{judgement.outcome.value}: {judgement.detail}"
    return f"{setting} at batch {batch} failed, and not for want of memory ({end}); its log is {log}."


def _environment(code: Path, threads: int | None) -> dict[str, str]:
    path = [str(code), os.environ.get("PYTHONPATH")]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}
    return variables | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
