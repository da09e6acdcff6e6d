"""The largest batch, or value of an axis, that trains on this device: asked for, searched, remembered."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from trainmark.base.errors import UserError
from trainmark.base.files import home
from trainmark.base.typed_json import flattened
from trainmark.events import Step, stream
from trainmark.launch.job import Job
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.outcome import JobOutcome, Outcome, outcome_of, tail
from trainmark.launch.watch import watch
from trainmark.machine.devices import Inventory
from trainmark.machine.host import read_host
from trainmark.measure.fit import FitAttempt, largest_fitting, next_batch
from trainmark.measure.key import Axes
from trainmark.runner.command import COMPILING, RankInterpreter, keep_code, own_job, usual_threads
from trainmark.runner.conformance import code_digest
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.inventory import Question, ask
from trainmark.runner.trial import require_room
from trainmark.store.files import LocalRecords
from trainmark.suite.plan import preferred_layouts
from trainmark.workloads import registry
from trainmark.workloads.registry import Family

# The first allots momenta, and libraries choose their algorithms; the second has all of them at once.
STEPS = 4
BATCH = "batch"


@dataclass(frozen=True)
class FitCase:
    """Everything that changes what fits; `memory` is the device's, `code` the workload's digest.

    `layout` is empty where the workload has no choice of layouts. `search` is what is tried: `batch`, or an
    axis, which is then not among `axes`, at a fixed `batch`.
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
    search: str = BATCH
    batch: int | None = None

    @property
    def family(self) -> Family:
        return registry.find(self.workload)

    @property
    def axis_labels(self) -> str:
        shown = (self.family.workload.axis(name).shown(value) for name, value in self.axes)
        return " ".join(filter(None, shown))

    def __str__(self) -> str:
        """As one line names it: `pytorch fp32 NCHW 224²`."""
        fixed = f"batch {self.batch}" if self.batch else ""
        words = [self.framework, self.precision, self.layout, self.axis_labels, fixed]
        return " ".join(filter(None, [*words, "compile" if self.compile else ""]))


class FitError(RuntimeError):
    """A try that failed, and not for want of memory; the message says how."""


class FitStoppedError(FitError):
    """By the user."""

    def __init__(self) -> None:
        super().__init__("stopped; every try is remembered, and the same command goes on from there.")


def trial_arguments(setting: FitCase, value: int) -> tuple[str, ...]:
    """Return the command line that tries a value of what is searched."""
    searched = () if setting.search == BATCH else ((setting.search, value),)
    return (
        *("--device", setting.device, "--precision", setting.precision),
        *(("--layout", setting.layout) if setting.layout else ()),
        *(
            word
            for name, chosen in (*setting.axes, *searched)
            for word in (setting.family.workload.axis(name).option, str(chosen))
        ),
        *("--batch", str(setting.batch or value), "--steps", str(STEPS)),
        *(("--compile", "default") if setting.compile else ()),
        *(("--memory-cap", str(setting.cap)) if setting.cap else ()),
    )


def try_value(setting: FitCase, value: int, stop_asked: Callable[[], bool]) -> FitAttempt:
    """FitError where it says nothing about memory; what the program refuses of an axis does not fit."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        folder = Path(made)
        keep_code(folder / "code", [setting.family])
        words = ("-u", "-m", setting.family.module(setting.framework), *trial_arguments(setting, value))
        command = (setting.python, *words)
        job = own_job(command, folder / "code", folder, threads=setting.threads or 0)
        ending = watch(LocalLauncher().start(job), job, COMPILING, stop_asked, lambda: None)
        judgement = outcome_of(ending, {0: tail(job.log(0))})
        if judgement.outcome is Outcome.INTERRUPTED:
            raise FitStoppedError
        require_room(folder)
        fits = judgement.outcome is Outcome.OK
        if setting.search != BATCH and judgement.outcome is Outcome.SKIPPED:
            return FitAttempt(value, False, None, round(ending.seconds, 1), judgement.detail, refused=True)
        if not fits and judgement.outcome is not Outcome.OOM:
            raise FitError(_failure(setting, value, judgement, job))
        peak = _peak(job) if fits else None
        return FitAttempt(value, fits, peak, round(ending.seconds, 1), "" if fits else judgement.detail)


def _peak(job: Job) -> int | None:
    """None where the framework cannot tell."""
    steps = (event for event in stream.read(job.events(0)) if isinstance(event, Step))
    return max((step.memory for step in steps if step.memory is not None), default=None)


def _failure(setting: FitCase, value: int, judgement: JobOutcome, job: Job) -> str:
    log = home() / "fit" / f"{setting.framework}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(job.log(0), log)
    end = f"{judgement.outcome.value}: {judgement.detail}"
    return (
        f"{setting} at {setting.search} {value} failed, and not for want of memory ({end}); its log is {log}."
    )


@dataclass(frozen=True)
class FitSearch:
    """The tries of one setting, and when the last of them was made."""

    setting: FitCase
    tries: tuple[FitAttempt, ...]
    measured: str


SEARCHES = LocalRecords("fit", FitSearch)


def keep_search(setting: FitCase, tries: Sequence[FitAttempt]) -> FitSearch:
    """Write the tries in place of those of the same setting, also with an earlier text of the program."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    search = FitSearch(setting, tuple(tries), now)
    SEARCHES.replace(setting.framework, _of(setting), search)
    return search


def forget_search(setting: FitCase) -> None:
    SEARCHES.replace(setting.framework, _of(setting))


def find_search(setting: FitCase) -> FitSearch | None:
    searches = SEARCHES.read(setting.framework)
    return next((search for search in searches if search.setting == setting), None)


def _of(setting: FitCase) -> Callable[[FitSearch], bool]:
    return lambda search: replace(search.setting, code=setting.code) == setting


@dataclass(frozen=True)
class FitRequest:
    """What is to be trained, as the command line says it; a layout of None is the framework's choice.

    `search` is what the largest is wanted of, the batch or an axis; of an axis at this `batch`.
    """

    framework: str
    python: str
    precisions: Sequence[str]
    layout: str | None
    compile: bool
    family: Family
    axes: Axes
    device: str
    caps: Sequence[int | None]
    search: str = BATCH
    batch: int | None = None
    first: int = 1


@dataclass(frozen=True)
class FitAnswer:
    """The tries of a finished search; `remembered` where all of them were made before."""

    setting: FitCase
    step: int
    most: int | None
    tries: tuple[FitAttempt, ...]
    measured: str
    remembered: bool

    @property
    def largest(self) -> int | None:
        return largest_fitting(self.tries, self.step)


class FitWatcher(Protocol):
    """Who looks on; the command line decides how it looks."""

    def began(self, setting: FitCase, batch: int) -> None: ...

    def ended(self, tried: FitAttempt) -> None: ...


def fit_cases(wanted: FitRequest, here: Inventory) -> list[FitCase]:
    """Every precision under every cap, once the framework has said that it can; UserError where not."""
    usual = _usual(wanted, here)
    layouts = (wanted.layout,) if wanted.layout else preferred_layouts(wanted.family.workload, wanted.device)
    asked = [(precision, layout) for precision in wanted.precisions for layout in layouts or ("",)]
    choices = [replace(usual, precision=precision, layout=layout) for precision, layout in asked]
    questions = [Question(trial_arguments(choice, wanted.first)) for choice in choices]
    answers = ask(RankInterpreter(wanted.python), wanted.family, wanted.framework, questions)
    if answers.silent is not None:
        raise UserError(f"{wanted.framework} does not start: {answers.silent}")
    version = answers.facts.get("framework_version")
    cases = []
    for precision in wanted.precisions:
        pairs = [
            pair for pair in zip(choices, answers.refusals, strict=True) if pair[0].precision == precision
        ]
        offered = next((choice for choice, refusal in pairs if refusal is None), None)
        if offered is None:
            raise UserError(f"{wanted.framework} refuses {precision} here: {pairs[0][1]}")
        cases += [replace(offered, version=version, cap=cap) for cap in wanted.caps]
    return cases


def _usual(wanted: FitRequest, here: Inventory) -> FitCase:
    card = here.cuda[0] if wanted.device == "cuda" and here.cuda else None
    return FitCase(
        framework=wanted.framework,
        version=None,
        python=wanted.python,
        precision="fp32",
        layout="",
        compile=wanted.compile,
        axes=tuple((name, value) for name, value in wanted.axes if name != wanted.search),
        device=wanted.device,
        device_name=card.name if card else read_host().cpu.model or "cpu",
        memory=card.memory_bytes if card else here.memory_bytes,
        cap=None,
        threads=None if card else usual_threads(max(1, int(here.cpu_cores))),
        code=code_digest(wanted.family, wanted.framework),
        workload=wanted.family.key,
        search=wanted.search,
        batch=wanted.batch,
    )


def fit(
    setting: FitCase, step: int, most: int | None, watcher: FitWatcher, interrupts: Interrupts
) -> FitAnswer:
    """Goes on from what is remembered; every try is remembered at once. FitError ends it."""
    remembered = find_search(setting)
    known = list(remembered.tries) if remembered else []
    measured, fresh = remembered.measured if remembered else "", False
    while (batch := next_batch(known, step, most)) is not None:
        if interrupts.stop_soon:
            raise FitStoppedError
        watcher.began(setting, batch)
        known.append(try_value(setting, batch, interrupts.stop_now))
        watcher.ended(known[-1])
        measured, fresh = keep_search(setting, known).measured, True
    return FitAnswer(setting, step, most, tuple(known), measured, remembered=not fresh)
