"""What every rank showed of itself against the reference: which figures differ by more than float32
explains.

The tolerances are argued in docs/conformance.md. Each is a share of the figure itself, and where a figure
can be nearly zero, a floor from the rounding of what it was taken from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from trainmark.workloads.common.conformance import (
    ROUNDING,
    Deviation,
    Numbers,
    beyond_tolerance,
    gradient_deviations,
    loss_deviations,
    loss_errors,
    movement_deviations,
    rank_sentences,
    sketch_norm,
    start_deviations,
    structure_deviations,
)
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.resnet50.conformance import reference
from trainmark.workloads.resnet50.shared import recipe, tensors

LOSS_TOLERANCE = 5e-6
GLOBAL_GRADIENT_TOLERANCE = 2e-4
GRADIENT_TOLERANCE = 1e-2
GRADIENT_FLOOR = 1e-5  # of the global norm: what the rounding of the layers above leaves in a small tensor
MOVED_TOLERANCE = 1e-2
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded
STATISTICS_TOLERANCE = (
    5e-3  # a variance as the mean of squares less the square of the mean loses a thousandth here
)


def rank_deviations(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Deviation]:
    """Of one rank, the gravest first; empty where it conforms."""
    wrong = list(structure_deviations(observed, tensors.shapes(), recipe.PARAMETERS))
    if wrong:
        return wrong
    seen, right = ((shown["gradient_norms"], shown["gradients"]) for shown in (observed, expected))
    return beyond_tolerance(
        [
            *start_deviations(observed, _given()),
            *loss_deviations(observed, expected, LOSS_TOLERANCE),
            *gradient_deviations(seen, right, GLOBAL_GRADIENT_TOLERANCE, GRADIENT_TOLERANCE, GRADIENT_FLOOR),
            *movement_deviations(observed, expected, _given(), MOVED_TOLERANCE, MOVED_FLOOR),
            *_statistics(observed, expected),
        ]
    )


def statistics_convention(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Which variance batch norm remembers: of the batch as a `population`, or as a `sample` of n - 1."""
    errors = {
        name: max(
            difference.share for difference in _statistic_deviations(observed["statistics"], expected[part])
        )
        for name, part in CONVENTIONS.items()
    }
    return min(errors, key=lambda name: errors[name])


CONVENTIONS = {"population": "statistics", "sample": "sample_statistics"}


@cache
def _given() -> dict[str, list[float]]:
    return {name: tensors.sketch(name, value) for name, value in tensors.initial_weights().items()}


def _statistics(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Deviation]:
    """A framework may remember either variance: what is trained does not depend on it."""
    part = CONVENTIONS[statistics_convention(observed, expected)]
    yield from _statistic_deviations(observed["statistics"], expected[part])


def _statistic_deviations(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Deviation]:
    for name, sketch in right.items():
        error = sketch_norm(np.subtract(seen[name], sketch))
        yield Deviation(f"the running {name}", error, STATISTICS_TOLERANCE * sketch_norm(sketch))


def compare(shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    expected = reference.expected(len(shown))
    differs = rank_sentences([rank_deviations(*pair) for pair in zip(shown, expected, strict=True)])
    largest = max(loss_errors(shown, expected))
    if differs:
        return Comparison(differs, largest)
    variance = statistics_convention(shown[0], expected[0])
    remark = f"batch norm keeps the {variance} variance"
    return Comparison((), largest, remark, (("running_variance", variance),))
