"""What a suite leaves open is done in the framework's fastest way: what to ask it for, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from trainmark.suite.model import ANY, AUTO, Case
from trainmark.suite.topology import ONE_DEVICE
from trainmark.workloads.declaration import Workload

# Tensor cores read channels last; CPU libraries block channels themselves.
FASTEST_LAYOUT = {"cuda": "NHWC"}

# Where a compiler and a captured step were seen to be faster, by framework and device.
COMPILED = CAPTURED = frozenset({("pytorch", "cuda")})


def preferred_layouts(workload: Workload, device: str) -> tuple[str, ...]:
    """Return the layouts of a workload, the faster one first, as a rule."""
    return tuple(sorted(workload.layouts, key=lambda layout: layout != FASTEST_LAYOUT.get(device)))


def choices(case: Case) -> tuple[Case, ...]:
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


def alike(cases: Iterable[Case]) -> Iterator[Case]:
    """A step is captured on one device only: left open, it is captured where no other topology is measured.

    Else a speed-up would hold several devices against one that runs in another way.
    """
    all_cases = list(cases)
    spread = {_alone(case) for case in all_cases if case.topology.devices > 1}
    for case in all_cases:
        yield replace(case, cuda_graph=False) if case.cuda_graph == AUTO and _alone(case) in spread else case


def _alone(case: Case) -> Case:
    return replace(case, topology=ONE_DEVICE)
