"""A multilayer perceptron that learns Friedman's first regression problem (Friedman 1991), declared.

A family of nobody's package: a suite names its folder, `conform` and `fit` take it as `--workload`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from friedman.task import METRICS

from trainmark.metric import declared_metrics
from trainmark.workloads.declaration import Axes, Axis, Comparison, Conformance, Layer, Workload

INPUTS = 10
# A short training that every framework must repeat.
BATCH, STEPS, WIDTH = 8, 5, 16
TOLERANCE = 1e-5  # of a loss, relative, in float32


def layers(axes: Axes) -> Iterator[Layer]:
    width = int(axes["width"])
    yield Layer(INPUTS * width + width, INPUTS * width)
    yield Layer(width + 1, width)


def flops(axes: Axes) -> float:
    """Of one sample: a multiply-add is two, and the backward pass is twice the forward pass."""
    return 6.0 * sum(layer.work for layer in layers(axes))


def compare(observed: Sequence[Mapping[str, Any]]) -> Comparison:
    """Hold the losses of every rank against a training in float64."""
    from friedman.task import reference

    expected = reference.losses(WIDTH, BATCH, STEPS, world_size=len(observed))
    errors = [
        abs(loss / exact - 1)
        for rank in observed
        for loss, exact in zip(rank["losses"], expected, strict=True)
    ]
    differs = () if max(errors) <= TOLERANCE else (f"losses differ by up to {max(errors):.1e}",)
    return Comparison(differs, largest_loss_error=max(errors))


WORKLOAD = Workload(
    name="friedman",
    title="a multilayer perceptron on Friedman's first problem",
    unit="rows",
    axes=(Axis("width", 64, "hidden units", slug="w{}", label="width {}"),),
    metrics=declared_metrics({"metrics": METRICS}),
    flops=flops,
    layers=layers,
    conformance=Conformance(
        lambda: ("--batch", str(BATCH), "--steps", str(STEPS), "--width", str(WIDTH)), compare
    ),
    learnable=True,
)
