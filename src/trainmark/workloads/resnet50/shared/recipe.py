"""What every framework trains, ResNet-50 v1.5: its shape, its recipes, its metrics.

A recipe is a file in `recipes/`, or one of the user's own in the same form.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Dict, Iterator, Sequence, Tuple

from trainmark.workloads.common import recipe

CLASSES = 1000
PARAMETERS = 25557032
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, width of the 3x3 convolution
EXPANSION = 4

# Initial weights are normal with variance 2/fan-in for a convolution (He et al. 2015) and 1/fan-in for the
# classifier; batch norm starts as the identity, the classifier's bias at zero.
BATCH_NORM_EPSILON = 1e-5
BATCH_NORM_MOMENTUM = 0.1  # share of the new batch in the running statistics

TRAINING_IMAGES = 1281167  # ILSVRC2012


@dataclass(frozen=True)
class ResNet50Recipe(recipe.Recipe):
    least_area: float = 0.08  # of an image that its random crop keeps

    def learning_rate(self, step: int, global_batch: int, epoch_samples: int = TRAINING_IMAGES) -> float:
        return super().learning_rate(step, global_batch, epoch_samples)


RecipeError = recipe.RecipeError
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes")
RECIPES = recipe.Recipes(FOLDER, ResNet50Recipe, default="ngc-90")
names, read, find = RECIPES.names, RECIPES.read, RECIPES.find
STANDARD = find("ngc-90", 256)


def bottlenecks() -> Iterator[Tuple[int, int, int]]:
    """Inputs, width and stride of every block: each stage but the first halves the image in its first 3x3."""
    inputs = 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            yield inputs, width, 2 if block == 0 and stage > 0 else 1
            inputs = width * EXPANSION


def features() -> int:
    """How many the classifier takes."""
    return STAGES[-1][1] * EXPANSION


def has_shortcut(inputs: int, width: int, stride: int) -> bool:
    """Whether a block has a convolution in its shortcut."""
    return stride != 1 or inputs != width * EXPANSION


def convolutions(image_size: int) -> Iterator[Tuple[int, int, int, int]]:
    """Every convolution as (inputs, outputs, kernel, output side), then the classifier as a 1x1 on side 1."""
    side = _halved(image_size)
    yield 3, 64, 7, side
    side = _halved(side)
    for inputs, width, stride in bottlenecks():
        yield inputs, width, 1, side  # v1.5: the stride is in the 3x3, so this one runs at full size
        side = side if stride == 1 else _halved(side)
        yield width, width, 3, side
        yield width, width * EXPANSION, 1, side
        if has_shortcut(inputs, width, stride):
            yield inputs, width * EXPANSION, 1, side
    yield features(), CLASSES, 1, 1


def flops_per_image(image_size: int) -> int:
    """Forward and backward, a multiply-add as two: 24.5 GFLOP at 224. Backward costs twice the forward."""
    forward = sum(2 * i * o * k * k * side * side for i, o, k, side in convolutions(image_size))
    return 3 * forward


def bytes_per_image(image_size: int, element: int) -> int:
    """The fewest that a step must move, where all but the products happens on their way in and out.

    Each of a convolution's three products reads its operands and writes its result; both gradients also
    read what came out of it, for its batch norm; and a block's end is read twice and written once instead of
    read: 191 MB at 224 with elements of two bytes.
    """
    moved, before = 0, (0, 0)
    for inputs, outputs, kernel, side in convolutions(image_size):
        across = {7: image_size, 3: before[1], 1: side}[kernel]
        moved += 3 * inputs * across**2 + 5 * outputs * side**2
        if before[0] == 3:  # the third of its block
            moved += 2 * outputs * side**2
        before = kernel, side
    return element * moved


def _halved(side: int) -> int:
    return (side + 1) // 2


METRICS = {
    "top1": {"title": "top-1", "better": "higher", "share": True},
    "top5": {"title": "top-5", "better": "higher", "share": True},
}


def evaluation(totals: Sequence[float], samples: int) -> Tuple[Dict[str, int], Dict[str, float]]:
    """Return the facts of an evaluation and its metrics, from how many were right, and right within five."""
    top1, top5 = map(round, totals)
    facts = {"correct1": top1, "correct5": top5, "samples": samples}
    return facts, {"top1": top1 / samples, "top5": top5 / samples}
