"""FLOP of a step by class as a workload declares them, where no operands were recorded: CUDA graphs, XLA."""

from __future__ import annotations

from collections.abc import Mapping

from trainmark.explain.classes import CONVOLUTION
from trainmark.explain.work.model import Work
from trainmark.workloads.declaration import Axes, Workload

STOCK = "stock"


def of_case(workload: Workload, axes: Axes, samples: float, engine: str = STOCK) -> dict[str, Work]:
    """Return the FLOP of one rank's step with so many samples; bytes are not declared.

    A family's own kernels compute 1x1 convolutions as matrix products too, in which class nobody can tell:
    such a case has no FLOP by class.
    """
    if workload.flops_by_class is None:
        return {}
    declared = workload.flops_by_class(axes)
    if engine != STOCK and CONVOLUTION in declared:
        return {}
    return {name: Work(flop=flop * samples) for name, flop in declared.items()}


def completed(by_operands: Mapping[str, Work], declared: Mapping[str, Work]) -> dict[str, Work]:
    """Return the work from operands, with declared FLOP where a class that has time has none."""
    result = dict(by_operands)
    for name, work in declared.items():
        if name in result and result[name].flop is None:
            result[name] = Work(work.flop, result[name].bytes, result[name].covered)
    return result
