"""What every rank of a transformer's training showed of itself, compared with its family's reference.

The tolerances are argued in docs/conformance.md. A transformer has no kinks: what two float32 programs
disagree in stays near the rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from trainmark.workloads.common import conformance as common
from trainmark.workloads.common.chance import sketch
from trainmark.workloads.common.conformance import (
    ROUNDING,
    Deviation,
    Numbers,
    beyond_tolerance,
    loss_errors,
    rank_sentences,
)
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.transformers.conformance import observe, reference
from trainmark.workloads.transformers.conformance.reference import network

LOSS_TOLERANCE = 1e-5
# What is clipped is scaled by a sum of 400,000 squares, which loses a digit in float32.
GLOBAL_GRADIENT_TOLERANCE = {observe.STEEP: 5e-5, observe.GENTLE: 1e-5}
GRADIENT_TOLERANCE = {observe.STEEP: 2e-4, observe.GENTLE: 5e-5}
GRADIENT_FLOOR = (
    2e-6  # of the global norm: what rounding leaves where a gradient is zero, as of the keys' bias
)
MOMENT_TOLERANCE = 5e-4
MOMENT_FLOOR = 2e-6  # of all first, or all second moments
MOVED_TOLERANCE = 5e-4
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded


def rank_deviations(family: str, observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Deviation]:
    """Return every figure of one rank with its error; those of another structure alone where it has one."""
    net = network(family)
    parameters = sum(int(np.prod(shape)) for shape in net.shapes.values())
    wrong = list(common.structure_deviations(observed, net.shapes, parameters))
    if wrong:
        return wrong
    given = _given(family)
    figures = [
        *common.start_deviations(observed, given),
        *common.loss_deviations(observed, expected, LOSS_TOLERANCE),
    ]
    for kind in observe.KINDS:
        seen, right = (
            (shown["gradient_norms"][kind], shown["gradients"][kind]) for shown in (observed, expected)
        )
        allowed = GLOBAL_GRADIENT_TOLERANCE[kind], GRADIENT_TOLERANCE[kind], GRADIENT_FLOOR
        figures += common.gradient_deviations(seen, right, *allowed, batch=f" ({kind} batch)")
    figures += _moments(observed["moments"], expected["moments"])
    figures += common.movement_deviations(observed, expected, given, MOVED_TOLERANCE, MOVED_FLOOR)
    return figures


@cache
def _given(family: str) -> dict[str, list[float]]:
    weights = observe.initial_weights(network(family).shapes)
    return {name: sketch(name, weight) for name, weight in weights.items()}


def _moments(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Deviation]:
    for order in ("first", "second"):
        norms = {
            name: common.sketch_norm(value) for name, value in right.items() if name.startswith(f"{order}/")
        }
        floor = MOMENT_FLOOR * common.total_norm(norms)
        for name, size in norms.items():
            error = common.sketch_norm(np.subtract(seen[name], right[name]))
            what = f"the {order} moment of {name.partition('/')[2]} after the last step"
            yield Deviation(what, error, MOMENT_TOLERANCE * size + floor)


def compare(family: str, optimizer: str, shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    expected = reference.expected(family, optimizer, len(shown))
    figures = [rank_deviations(family, *pair) for pair in zip(shown, expected, strict=True)]
    differs = rank_sentences([beyond_tolerance(rank) for rank in figures])
    share = max(figure.share for rank in figures for figure in rank)
    largest = max(loss_errors(shown, expected))
    if differs:
        return Comparison(differs, largest)
    return Comparison((), largest, f"every figure within {share:.1%} of its tolerance")
