"""What a training showed of itself against the reference: which figures differ by more than float32 explains.

The tolerances are argued in docs/conformance.md. Each is a share of the figure itself, and where a figure can
be nearly zero, a floor from the rounding of what it was taken from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from trainmark.workloads.common.conformance.differences import (
    ROUNDING,
    Difference,
    Numbers,
    beyond_tolerance,
    gradients,
    losses,
    moved,
    norm,
    start,
    structure,
)
from trainmark.workloads.resnet50.shared import conformance, recipe, tensors

LOSS = 5e-6
GLOBAL_GRADIENT = 2e-4
GRADIENT = 1e-2
GRADIENT_FLOOR = 1e-5  # of the global norm: what the rounding of the layers above leaves in a small tensor
MOVED = 1e-2
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded
STATISTICS = 5e-3  # a variance as the mean of squares less the square of the mean loses a thousandth here


def differences(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    """Of one rank, the gravest first; empty where it conforms."""
    wrong = list(structure(observed, tensors.shapes(), recipe.PARAMETERS))
    if wrong:
        return wrong
    seen, right = ((shown["gradient_norms"], shown["gradients"]) for shown in (observed, expected))
    return beyond_tolerance(
        [
            *start(observed, _given()),
            *losses(observed, expected, LOSS),
            *gradients(seen, right, GLOBAL_GRADIENT, GRADIENT, GRADIENT_FLOOR),
            *moved(observed, expected, _given(), MOVED, MOVED_FLOOR),
            *_statistics(observed, expected),
        ]
    )


def statistics_convention(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Which variance batch norm remembers: of the batch as a `population`, or as a `sample` of n - 1."""
    errors = {
        name: max(difference.share for difference in _against(observed["statistics"], expected[part]))
        for name, part in CONVENTIONS.items()
    }
    return min(errors, key=lambda name: errors[name])


CONVENTIONS = {"population": "statistics", "sample": "sample_statistics"}


@cache
def _given() -> dict[str, list[float]]:
    return {name: conformance.sketch(name, value) for name, value in tensors.initial().items()}


def _statistics(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Difference]:
    """A framework may remember either variance: what is trained does not depend on it."""
    part = CONVENTIONS[statistics_convention(observed, expected)]
    yield from _against(observed["statistics"], expected[part])


def _against(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Difference]:
    for name, sketch in right.items():
        error = norm(np.subtract(seen[name], sketch))
        yield Difference(f"the running {name}", error, STATISTICS * norm(sketch))
