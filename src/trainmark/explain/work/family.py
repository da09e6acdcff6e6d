"""FLOP of a step by class as a workload declares them, where no operands were recorded: CUDA graphs, XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmark.explain.classes import CONVOLUTION, MATRIX_PRODUCT
from trainmark.explain.profile.model import DeviceSpans
from trainmark.explain.work.model import Work
from trainmark.workloads.declaration import Axes, Workload

STOCK = "stock"
# A model of convolutions: whose other products are fewer than this share of their FLOP.
FEW = 0.05


def of_case(
    workload: Workload, axes: Axes, samples: float, engine: str = STOCK, graph: bool = False
) -> dict[str, Work]:
    """Return the FLOP of one rank's step with so many samples; bytes are not declared.

    A family's own kernels compute 1x1 convolutions as matrix products too. Where operators are recorded, part
    of the FLOP is theirs and nobody can tell which: such a case has no declared FLOP by class.
    """
    if workload.flops_by_class is None:
        return {}
    declared = workload.flops_by_class(axes)
    if engine != STOCK and not graph and CONVOLUTION in declared:
        return {}
    return {name: Work(flop=flop * samples) for name, flop in declared.items()}


def with_convolutions(
    classes: Sequence[str], spans: DeviceSpans, declared: Mapping[str, Work]
) -> tuple[str, ...]:
    """Return the classes with the matrix products of a replayed graph as the convolutions that they are.

    1x1 convolutions are computed as matrix products, and a graph has no operators to tell them by. In a model
    that declares next to no other products nearly all of these are convolutions.
    """
    convolutions = declared[CONVOLUTION].flop or 0.0 if CONVOLUTION in declared else 0.0
    products = declared[MATRIX_PRODUCT].flop or 0.0 if MATRIX_PRODUCT in declared else 0.0
    if products >= FEW * convolutions:
        return tuple(classes)
    return tuple(
        CONVOLUTION if replayed and name == MATRIX_PRODUCT else name
        for name, replayed in zip(classes, spans.in_graph.tolist(), strict=True)
    )


def completed(by_operands: Mapping[str, Work], declared: Mapping[str, Work]) -> dict[str, Work]:
    """Return the work from operands, with declared FLOP where a class that has time has none."""
    result = dict(by_operands)
    for name, work in declared.items():
        if name in result and result[name].flop is None:
            result[name] = Work(work.flop, result[name].bytes, result[name].covered)
    return result
