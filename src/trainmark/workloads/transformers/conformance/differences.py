"""What a transformer's training showed of itself against the reference: what float32 does not explain.

The tolerances are argued in docs/conformance.md. A transformer has no kinks: what two float32 programs
disagree in stays near the rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from trainmark.workloads.common.conformance import differences as common
from trainmark.workloads.common.conformance.differences import ROUNDING, Difference, Numbers
from trainmark.workloads.common.sketch import sketch
from trainmark.workloads.transformers.conformance import initial
from trainmark.workloads.transformers.conformance.reference import network

LOSS = 1e-5
# What is clipped is scaled by a sum of 400,000 squares, which loses a digit in float32.
GLOBAL_GRADIENT = {initial.STEEP: 5e-5, initial.GENTLE: 1e-5}
GRADIENT = {initial.STEEP: 2e-4, initial.GENTLE: 5e-5}
GRADIENT_FLOOR = (
    2e-6  # of the global norm: what rounding leaves where a gradient is zero, as of the keys' bias
)
MOMENT = 5e-4
MOMENT_FLOOR = 2e-6  # of all first, or all second moments
MOVED = 5e-4
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded


def compared(family: str, observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    """Return every figure of one rank with its error; those of another structure alone where it has one."""
    net = network(family)
    parameters = sum(int(np.prod(shape)) for shape in net.shapes.values())
    wrong = list(common.structure(observed, net.shapes, parameters))
    if wrong:
        return wrong
    given = _given(family)
    figures = [*common.start(observed, given), *common.losses(observed, expected, LOSS)]
    for kind in initial.KINDS:
        seen, right = (
            (shown["gradient_norms"][kind], shown["gradients"][kind]) for shown in (observed, expected)
        )
        allowed = GLOBAL_GRADIENT[kind], GRADIENT[kind], GRADIENT_FLOOR
        figures += common.gradients(seen, right, *allowed, batch=f" ({kind} batch)")
    figures += _moments(observed["moments"], expected["moments"])
    figures += common.moved(observed, expected, given, MOVED, MOVED_FLOOR)
    return figures


@cache
def _given(family: str) -> dict[str, list[float]]:
    weights = initial.weights(network(family).shapes)
    return {name: sketch(name, weight) for name, weight in weights.items()}


def _moments(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Difference]:
    for order in ("first", "second"):
        norms = {name: common.norm(value) for name, value in right.items() if name.startswith(f"{order}/")}
        floor = MOMENT_FLOOR * common.total(norms)
        for name, size in norms.items():
            error = common.norm(np.subtract(seen[name], right[name]))
            what = f"the {order} moment of {name.partition('/')[2]} after the last step"
            yield Difference(what, error, MOMENT * size + floor)
