"""Figures of a training against those of a reference, each with what float32 explains. Harness side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROUNDING = 2.0**-24  # of float32, relative

Numbers = Sequence[float]


@dataclass(frozen=True)
class Deviation:
    """`error` and `allowed` are in the unit of the figure, a loss or the norm of a tensor."""

    what: str
    error: float
    allowed: float

    def __str__(self) -> str:
        if self.allowed == 0:
            return self.what
        return f"{self.what} is off by {self.error:.2g} where {self.allowed:.2g} is allowed"

    @property
    def share(self) -> float:
        """The error as a multiple of what is allowed."""
        return self.error / self.allowed if self.allowed else np.inf if self.error else 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def beyond_tolerance(compared: Iterable[Deviation]) -> list[Deviation]:
    """Return the differences that are not allowed, the gravest first."""
    # Not a number is never within its tolerance.
    wrong = [difference for difference in compared if not difference.error <= difference.allowed]
    wrong.sort(key=lambda difference: difference.allowed / difference.error)
    return wrong


def structure_deviations(
    observed: Mapping[str, Any], shapes: Mapping[str, Sequence[int]], parameters: int
) -> Iterator[Deviation]:
    """Yield every tensor of another shape, and another count of parameters."""
    right = {name: list(shape) for name, shape in shapes.items()}
    seen = observed["shapes"]
    for name in [*right, *(name for name in seen if name not in right)]:
        if seen.get(name) != right.get(name):
            text = f"{name} has the shape {seen.get(name)} instead of {right.get(name)}"
            yield Deviation(text, 1.0, 0.0)
    if observed["parameters"] != parameters:
        text = f"the model has {observed['parameters']:,} parameters instead of {parameters:,}"
        yield Deviation(text, 1.0, 0.0)


def start_deviations(observed: Mapping[str, Any], given: Mapping[str, Numbers]) -> Iterator[Deviation]:
    """Compare the tensors that were loaded with those that were given, by their sketches."""
    for name, right in given.items():
        error = sketch_norm(np.subtract(observed["start"][name], right))
        yield Deviation(f"{name} as it was loaded", error, ROUNDING * sketch_norm(right))


def loss_deviations(
    observed: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float
) -> Iterator[Deviation]:
    for step, (loss, right) in enumerate(zip(observed["losses"], expected["losses"], strict=True), 1):
        yield Deviation(f"the loss of step {step}", abs(loss - right), tolerance * right)


def gradient_deviations(
    seen: tuple[Mapping[str, float], Mapping[str, Numbers]],
    right: tuple[Mapping[str, float], Mapping[str, Numbers]],
    of_total: float,
    of_tensor: float,
    floor: float,
    batch: str = "",
) -> Iterator[Deviation]:
    """Compare the norms and the sketches of gradients; the floor is a share of the global norm."""
    (norms, sketches), (right_norms, right_sketches) = seen, right
    sum_of_all = total_norm(right_norms)
    yield Deviation(
        f"the global gradient norm{batch}", abs(total_norm(norms) - sum_of_all), of_total * sum_of_all
    )
    for name, right_norm in right_norms.items():
        allowed = of_tensor * right_norm + floor * sum_of_all
        yield Deviation(f"the gradient norm of {name}{batch}", abs(norms[name] - right_norm), allowed)
        error = sketch_norm(np.subtract(sketches[name], right_sketches[name]))
        yield Deviation(f"the gradient of {name}{batch}", error, allowed)


def movement_deviations(
    observed: Mapping[str, Any],
    expected: Mapping[str, Any],
    given: Mapping[str, Numbers],
    of_way: float,
    of_weights: float,
) -> Iterator[Deviation]:
    """Compare the way that each tensor went from where it began."""
    for name, right in expected["moved"].items():
        error = sketch_norm(np.subtract(observed["moved"][name], right))
        allowed = of_way * sketch_norm(right) + of_weights * sketch_norm(given[name])
        yield Deviation(f"{name} after the last step", error, allowed)


def loss_errors(shown: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the relative error of every loss of every rank."""
    return [
        abs(loss / right_loss - 1)
        for seen, right in zip(shown, expected, strict=True)
        for loss, right_loss in zip(seen["losses"], right["losses"], strict=True)
    ]


def rank_sentences(by_rank: Sequence[Sequence[Deviation]]) -> tuple[str, ...]:
    """Name every difference, and the rank where there are several."""
    return tuple(
        f"rank {rank}: {difference}" if len(by_rank) > 1 else str(difference)
        for rank, differences in enumerate(by_rank)
        for difference in differences
    )


def sketch_norm(sketch: Any) -> float:
    """Return the norm of the tensor behind a sketch, as the sketch estimates it."""
    return float(np.sqrt(np.mean(np.square(sketch))))


def total_norm(norms: Mapping[str, float]) -> float:
    return float(np.sqrt(sum(value**2 for value in norms.values())))


def recorded(value: Any) -> Any:
    """Return numbers in nine digits: a hundred times what float32 tells apart."""
    if isinstance(value, dict):
        return {name: recorded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [recorded(item) for item in value]
    return float(f"{value:.9g}")


def ship(computed: Mapping[str, Any], file: Path) -> None:
    """Write a reference, a line for each list of numbers."""
    lines = json.dumps(computed, separators=(",", ":")).replace("],", "],\n")
    file.write_text(lines + "\n", encoding="utf-8")
