"""ResNet-50 v1.5 on images, declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmark.metric import declared_metrics
from trainmark.workloads.declaration import (
    Axes,
    Axis,
    Comparison,
    Conformance,
    Layer,
    Workload,
    recipe_summaries,
)
from trainmark.workloads.resnet50.shared import recipe
from trainmark.workloads.resnet50.shared.recipe import METRICS


def flops(axes: Axes) -> float:
    return recipe.flops_per_image(int(axes["image_size"]))


def flops_by_class(axes: Axes) -> dict[str, float]:
    """Return what a step computes for one image: the images themselves need no gradient."""
    stem, *others, classifier = (layer.work for layer in layers(axes))
    return {"convolution": 2 * (2 * stem + 3 * sum(others)), "matrix product": 2 * 3 * classifier}


def layers(axes: Axes) -> Iterator[Layer]:
    """From input to output, each convolution with its batch norm: 25,557,032 parameters."""
    *convolutions, (inputs, outputs, _, _) = recipe.convolutions(int(axes["image_size"]))
    for channels, width, kernel, side in convolutions:
        weights = channels * width * kernel * kernel
        yield Layer(weights + 2 * width, weights * side * side)
    yield Layer(inputs * outputs + outputs, inputs * outputs)


# Their modules import numpy, and read the reference: not before they are needed.
def conformance_arguments() -> tuple[str, ...]:
    from trainmark.workloads.resnet50.shared.tensors import BATCH, IMAGE_SIZE, STEPS, TRAINING_IMAGES

    return (
        *("--batch", str(BATCH), "--image-size", str(IMAGE_SIZE)),
        *("--steps", str(STEPS), "--training-images", str(TRAINING_IMAGES)),
    )


def compare_with_reference(shown: Sequence[Mapping[str, Any]]) -> Comparison:
    from trainmark.workloads.resnet50.shared.reference import compare

    return compare(shown)


WORKLOAD = Workload(
    name="resnet50",
    title="ResNet-50 v1.5",
    unit="images",
    short_unit="img",
    axes=(Axis("image_size", 224, "image size", slug="s{}", label="{}²"),),
    metrics=declared_metrics({"metrics": METRICS}),
    flops=flops,
    flops_by_class=flops_by_class,
    layers=layers,
    recipes=lambda: recipe_summaries(recipe.RECIPES),
    standard_recipe="ngc-90",
    conformance=Conformance(conformance_arguments, compare_with_reference),
    datasets=("images",),
    loaders=("host", "own", "dali-cpu", "dali-gpu"),
    layouts=("NCHW", "NHWC"),
    engines=("stock", "fused"),
    compiles_update=("tensorflow",),
    names_elsewhere={"mlperf": "resnet", "airank": "ResNet50", "dlperf": "rn50"},
)
