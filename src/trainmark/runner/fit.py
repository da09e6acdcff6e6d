"""The largest batch, or value of an axis, that trains on this device: asked for, searched, remembered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from trainmark.base.errors import UserError
from trainmark.machine.devices import Inventory
from trainmark.machine.host import read_host
from trainmark.measure.fit import FitAttempt, largest_fitting, next_batch
from trainmark.measure.key import Axes
from trainmark.runner import fit_trial
from trainmark.runner.conformance import code_digest
from trainmark.runner.fit_trial import BATCH, FitCase, FitStoppedError, trial_arguments, try_value
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.preflight import Question, ask
from trainmark.runner.program import RankInterpreter
from trainmark.suite.plan import preferred_layouts
from trainmark.workloads.registry import Family


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
        threads=None if card else _threads(here.cpu_cores),
        code=code_digest(wanted.family, wanted.framework),
        workload=wanted.family.key,
        search=wanted.search,
        batch=wanted.batch,
    )


def fit(
    setting: FitCase, step: int, most: int | None, watcher: FitWatcher, interrupts: Interrupts
) -> FitAnswer:
    """Goes on from what is remembered; every try is remembered at once. FitError ends it."""
    remembered = fit_trial.find(setting)
    known = list(remembered.tries) if remembered else []
    measured, fresh = remembered.measured if remembered else "", False
    while (batch := next_batch(known, step, most)) is not None:
        if interrupts.stop_soon:
            raise FitStoppedError
        watcher.began(setting, batch)
        known.append(try_value(setting, batch, interrupts.stop_now))
        watcher.ended(known[-1])
        measured, fresh = fit_trial.keep(setting, known).measured, True
    return FitAnswer(setting, step, most, tuple(known), measured, remembered=not fresh)


def _threads(cores: float) -> int:
    named = os.environ.get("OMP_NUM_THREADS", "")
    return int(named) if named.isdecimal() and int(named) else max(1, int(cores))
