"""The plan: which trials, in which order, and which the machine cannot hold.

What a suite leaves open is done in the framework's fastest way.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from trainmark.suite.model import ANY, AUTO, ONE_DEVICE, Case, Suite, Topology
from trainmark.workloads.declaration import Workload

# Tensor cores read channels last; CPU libraries block channels themselves.
FASTEST_LAYOUT = {"cuda": "NHWC"}

# Where a compiler and a captured step were seen to be faster, by framework and device.
COMPILED = CAPTURED = frozenset({("pytorch", "cuda")})


def preferred_layouts(workload: Workload, device: str) -> tuple[str, ...]:
    """Return the layouts of a workload, the faster one first, as a rule."""
    return tuple(sorted(workload.layouts, key=lambda layout: layout != FASTEST_LAYOUT.get(device)))


def fastest_choices(case: Case) -> tuple[Case, ...]:
    """The case as it may run: as it says, and where it leaves something open, the fastest first."""
    here, stock = (case.framework, case.device), case.engine == "stock"
    layouts = preferred_layouts(case.family.workload, case.device) if case.layout == ANY else (case.layout,)
    compiled = _tried(case.compile, here in COMPILED and stock)
    captured = _tried(case.cuda_graph, here in CAPTURED)
    return tuple(
        replace(case, layout=layout, compile=compiling, cuda_graph=capturing)
        for layout, compiling, capturing in product(layouts, compiled, captured)
    )


def _tried(asked: bool | str | None, faster: bool) -> tuple[bool | str | None, ...]:
    if asked != AUTO:
        return (asked,)
    return (True, False) if faster else (False,)


def capture_evenly(cases: Iterable[Case]) -> Iterator[Case]:
    """A step is captured on one device only: left open, it is captured where no other topology is measured.

    Else a speed-up would hold several devices against one that runs in another way.
    """
    all_cases = list(cases)
    spread = {_on_one_device(case) for case in all_cases if case.topology.devices > 1}
    for case in all_cases:
        yield (
            replace(case, cuda_graph=False)
            if case.cuda_graph == AUTO and _on_one_device(case) in spread
            else case
        )


def _on_one_device(case: Case) -> Case:
    return replace(case, topology=ONE_DEVICE)


@dataclass(frozen=True)
class Resources:
    """What there is to run on: `cuda` devices or the cores of the CPU, on each of its nodes."""

    device: str
    devices: int
    nodes: int = 1
    cores: int = 1

    @property
    def whole(self) -> Topology:
        return Topology(self.nodes, self.devices)


@dataclass(frozen=True)
class PlannedTrial:
    case: Case
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.case.slug}/{self.repeat:02d}"


@dataclass(frozen=True)
class SkippedCase:
    case: Case
    reason: str


@dataclass(frozen=True)
class Plan:
    """The cases that will run and those that will not; in each round every case has one trial.

    `against` are the slugs of a comparison, the baseline first; empty where nothing is compared.
    """

    cases: tuple[Case, ...]
    skipped: tuple[SkippedCase, ...]
    seed: int
    baseline: str | None = None

    def round(self, repeat: int) -> list[PlannedTrial]:
        """Shuffled anew from the seed: slow drift and the trial before hit all cases alike."""
        trials = [PlannedTrial(case, repeat) for case in self.cases if repeat <= case.rules.repeats.most]
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

    def certain(self) -> list[PlannedTrial]:
        """The trials that run whatever the spread turns out to be."""
        rounds = (self.round(repeat) for repeat in range(1, self.rounds + 1))
        return [
            trial for trials in rounds for trial in trials if trial.repeat <= trial.case.rules.repeats.least
        ]


def plan(suite: Suite, machine: Resources) -> Plan:
    """Cases meant for another kind of machine (`when`) are left out; those that do not fit are named."""
    cases, skipped = [], []
    for case in suite.cases:
        if case.when not in (None, machine.device):
            continue
        placed = replace(case, device=machine.device if case.device == "auto" else case.device)
        if reason := lacking(placed, machine):
            skipped.append(SkippedCase(placed, reason))
        else:
            cases.append(placed)
    return Plan(
        tuple(capture_evenly(_with_threads(cases, machine.cores))), tuple(skipped), suite.seed, suite.baseline
    )


def _with_threads(cases: list[Case], cores: int) -> Iterator[Case]:
    """A CPU device is a share of the cores, the same in every topology: else no speed-up means anything."""
    ranks = max((case.topology.devices_per_node for case in cases if case.device == "cpu"), default=1)
    for case in cases:
        yield replace(case, fair_threads=cores // ranks) if case.device == "cpu" else case


def lacking(case: Case, machine: Resources) -> str | None:
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
