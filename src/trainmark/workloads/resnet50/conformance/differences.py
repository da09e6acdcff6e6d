"""What a training showed of itself against the reference: which figures differ by more than float32 explains.

The tolerances are argued in docs/conformance.md. Each is a share of the figure itself, and where a figure can
be nearly zero, a floor from the rounding of what it was taken from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from trainmark.workloads.resnet50.shared import conformance, recipe, tensors

ROUNDING = 2.0**-24  # of float32, relative
LOSS = 5e-6
GLOBAL_GRADIENT = 2e-4
GRADIENT = 1e-2
GRADIENT_FLOOR = 1e-5  # of the global norm: what the rounding of the layers above leaves in a small tensor
MOVED = 1e-2
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded
STATISTICS = 5e-3  # a variance as the mean of squares less the square of the mean loses a thousandth here

Numbers = Sequence[float]


@dataclass(frozen=True)
class Difference:
    """`error` and `allowed` are in the unit of the figure, a loss or the norm of a tensor."""

    what: str
    error: float
    allowed: float

    def __str__(self) -> str:
        if self.allowed == 0:
            return self.what
        return f"{self.what} is off by {self.error:.2g} where {self.allowed:.2g} is allowed"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def differences(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Difference]:
    """Of one rank, the gravest first; empty where it conforms."""
    wrong = list(_structure(observed))
    if not wrong:
        compared = [*_start(observed), *_losses(observed, expected), *_gradients(observed, expected)]
        compared += [*_moved(observed, expected), *_statistics(observed, expected)]
        # Not a number is never within its tolerance.
        wrong = [difference for difference in compared if not difference.error <= difference.allowed]
        wrong.sort(key=lambda difference: difference.allowed / difference.error)
    return wrong


def statistics_convention(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Which variance batch norm remembers: of the batch as a `population`, or as a `sample` of n - 1."""
    errors = {
        name: max(d.error / d.allowed for d in _against(observed["statistics"], expected[part]))
        for name, part in CONVENTIONS.items()
    }
    return min(errors, key=lambda name: errors[name])


CONVENTIONS = {"population": "statistics", "sample": "sample_statistics"}


def _structure(observed: Mapping[str, Any]) -> Iterator[Difference]:
    shapes = {name: list(shape) for name, shape in tensors.shapes().items()}
    seen = observed["shapes"]
    for name in [*shapes, *(name for name in seen if name not in shapes)]:
        if seen.get(name) != shapes.get(name):
            text = f"{name} has the shape {seen.get(name)} instead of {shapes.get(name)}"
            yield Difference(text, 1.0, 0.0)
    if observed["parameters"] != recipe.PARAMETERS:
        text = f"the model has {observed['parameters']:,} parameters instead of {recipe.PARAMETERS:,}"
        yield Difference(text, 1.0, 0.0)


@cache
def _given() -> dict[str, list[float]]:
    return {name: conformance.sketch(name, value) for name, value in tensors.initial().items()}


def _start(observed: Mapping[str, Any]) -> Iterator[Difference]:
    for name, given in _given().items():
        error = _norm(np.subtract(observed["start"][name], given))
        yield Difference(f"{name} as it was loaded", error, ROUNDING * _norm(given))


def _losses(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Difference]:
    for step, (loss, right) in enumerate(zip(observed["losses"], expected["losses"], strict=True), 1):
        yield Difference(f"the loss of step {step}", abs(loss - right), LOSS * right)


def _gradients(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Difference]:
    norms, right = observed["gradient_norms"], expected["gradient_norms"]
    total = _total(right)
    yield Difference("the global gradient norm", abs(_total(norms) - total), GLOBAL_GRADIENT * total)
    for name in right:
        allowed = GRADIENT * right[name] + GRADIENT_FLOOR * total
        yield Difference(f"the gradient norm of {name}", abs(norms[name] - right[name]), allowed)
        error = _norm(np.subtract(observed["gradients"][name], expected["gradients"][name]))
        yield Difference(f"the gradient of {name}", error, allowed)


def _moved(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Difference]:
    for name, right in expected["moved"].items():
        error = _norm(np.subtract(observed["moved"][name], right))
        allowed = MOVED * _norm(right) + MOVED_FLOOR * _norm(_given()[name])
        yield Difference(f"{name} after the last step", error, allowed)


def _statistics(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Difference]:
    """A framework may remember either variance: what is trained does not depend on it."""
    part = CONVENTIONS[statistics_convention(observed, expected)]
    yield from _against(observed["statistics"], expected[part])


def _against(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Difference]:
    for name, sketch in right.items():
        error = _norm(np.subtract(seen[name], sketch))
        yield Difference(f"the running {name}", error, STATISTICS * _norm(sketch))


def _norm(sketch: Any) -> float:
    """The norm of the tensor behind a sketch, as the sketch estimates it."""
    return float(np.sqrt(np.mean(np.square(sketch))))


def _total(norms: Mapping[str, float]) -> float:
    return float(np.sqrt(sum(norm**2 for norm in norms.values())))
