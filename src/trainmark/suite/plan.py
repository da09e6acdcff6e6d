"""The plan: which trials, in which order, and which the machine cannot hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmark.suite.fastest import alike
from trainmark.suite.model import Case, Suite
from trainmark.suite.topology import Topology


@dataclass(frozen=True)
class Machine:
    """What there is to run on: `cuda` devices or the cores of the CPU, on each of its nodes."""

    device: str
    devices: int
    nodes: int = 1
    cores: int = 1

    @property
    def whole(self) -> Topology:
        return Topology(self.nodes, self.devices)


@dataclass(frozen=True)
class Trial:
    case: Case
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.case.slug}/{self.repeat:02d}"


@dataclass(frozen=True)
class Skip:
    case: Case
    reason: str


@dataclass(frozen=True)
class Plan:
    """The cases that will run and those that will not; in each round every case has one trial.

    `against` are the slugs of a comparison, the baseline first; empty where nothing is compared.
    """

    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]
    seed: int
    baseline: str | None = None

    def round(self, repeat: int) -> list[Trial]:
        """Shuffled anew from the seed: slow drift and the trial before hit all cases alike."""
        trials = [Trial(case, repeat) for case in self.cases if repeat <= case.rules.repeats.most]
        random.Random(f"{self.seed}/{repeat}").shuffle(trials)
        return trials

    @property
    def against(self) -> tuple[str, ...]:
        baseline = [case.slug for case in self.cases if self.baseline and case.goes_by(self.baseline)]
        others = [case.slug for case in self.cases if case.slug not in baseline]
        return (*baseline, *others) if baseline and others else ()

    @property
    def rounds(self) -> int:
        return max((case.rules.repeats.most for case in self.cases), default=0)

    def certain(self) -> list[Trial]:
        """The trials that run whatever the spread turns out to be."""
        rounds = (self.round(repeat) for repeat in range(1, self.rounds + 1))
        return [
            trial for trials in rounds for trial in trials if trial.repeat <= trial.case.rules.repeats.least
        ]


def plan(suite: Suite, machine: Machine) -> Plan:
    """Cases meant for another kind of machine (`when`) are left out; those that do not fit are named."""
    cases, skipped = [], []
    for case in suite.cases:
        if case.when not in (None, machine.device):
            continue
        placed = replace(case, device=machine.device if case.device == "auto" else case.device)
        if reason := lacking(placed, machine):
            skipped.append(Skip(placed, reason))
        else:
            cases.append(placed)
    return Plan(tuple(alike(_with_threads(cases, machine.cores))), tuple(skipped), suite.seed, suite.baseline)


def _with_threads(cases: list[Case], cores: int) -> Iterator[Case]:
    """A CPU device is a share of the cores, the same in every topology: else no speed-up means anything."""
    ranks = max((case.topology.devices_per_node for case in cases if case.device == "cpu"), default=1)
    for case in cases:
        yield replace(case, fair_threads=cores // ranks) if case.device == "cpu" else case


def lacking(case: Case, machine: Machine) -> str | None:
    """Why this machine cannot hold the case; None where it can."""
    topology = case.topology
    if topology.nodes > machine.nodes:
        return f"needs {topology.nodes} nodes; this run has {machine.nodes} (--hosts names more)"
    if case.device == "cuda" and machine.device != "cuda":
        return "needs a CUDA device; this machine has none"
    if case.device == "cuda" and topology.devices_per_node > machine.devices:
        return f"needs {topology.devices_per_node} CUDA devices a node; this machine has {machine.devices}"
    if case.device == "cpu" and topology.devices_per_node > machine.cores:
        return f"needs {topology.devices_per_node} cores, one a rank; this machine has {machine.cores}"
    return None
