"""What every framework trains, ResNet-50 v1.5, and the recipes it can be trained by.

A recipe is a file in `recipes/`, or one of the user's own in the same form. Runs inside every framework's
interpreter: standard library only, Python 3.7+.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

CLASSES = 1000
PARAMETERS = 25557032
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, width of the 3x3 convolution
EXPANSION = 4

# Initial weights are normal with variance 2/fan-in for a convolution (He et al. 2015) and 1/fan-in for the
# classifier; batch norm starts as the identity, the classifier's bias at zero.
BATCH_NORM_EPSILON = 1e-5
BATCH_NORM_MOMENTUM = 0.1  # share of the new batch in the running statistics

TRAINING_IMAGES = 1281167  # ILSVRC2012
LARGEST_LINEAR_BATCH = 8192  # Goyal et al. 2017: beyond it, a rate in proportion costs accuracy
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipes")


class Recipe(NamedTuple):
    """How the model is trained, at one global batch. Weight decay is never on batch norm."""

    name: str
    optimizer: str  # sgd or lars
    momentum: float
    weight_decay: float
    label_smoothing: float
    schedule: str  # cosine or polynomial
    rate: float  # at the global batch `rate_batch`; sgd scales it in proportion
    rate_batch: int
    warmup_epochs: float
    epochs: int
    least_area: float = 0.08  # of an image that its random crop keeps
    mixup: float = 0.0  # both parameters of the beta distribution that the shares of two images come from
    end_rate: float = 0.0
    trust: float = 0.0  # LARS: the length of a step as a share of the weights' own, at rate 1
    target: Dict[str, float] | None = None
    batch_per_device: int | None = None
    loss_scale: float | None = None
    about: str = ""
    source: str = ""

    def learning_rate(self, step: int, global_batch: int, training_images: int = TRAINING_IMAGES) -> float:
        """Rises linearly, then falls as the schedule says; in epochs, whatever the batch."""
        peak = self.rate * global_batch / self.rate_batch
        epoch = (step + 1) * global_batch / training_images  # the first step already moves
        if epoch < self.warmup_epochs:
            return peak * epoch / self.warmup_epochs
        left = 1 - min(1.0, (epoch - self.warmup_epochs) / (self.epochs - self.warmup_epochs))
        if self.schedule == "polynomial":
            return self.end_rate + (peak - self.end_rate) * left**2
        return peak * (1 + math.cos(math.pi * (1 - left))) / 2

    def over(self, epochs: int) -> Recipe:
        """The same course in so many epochs, the warm-up in proportion."""
        return self._replace(epochs=epochs, warmup_epochs=self.warmup_epochs * epochs / self.epochs)

    def departures(self, epochs: int, batch_per_device: int, global_batch: int, loss_scale: Any) -> List[str]:
        """What the recipe fixes and this training does otherwise."""
        said = []
        if epochs != self.epochs:
            said.append("{} epochs, not {}".format(epochs, self.epochs))
        if self.optimizer == "sgd" and global_batch > LARGEST_LINEAR_BATCH:
            said.append(
                "its rate grows with the batch, which is known to hold to {}, not to {}".format(
                    LARGEST_LINEAR_BATCH, global_batch
                )
            )
        if self.batch_per_device not in (None, batch_per_device):
            said.append("batch {} a device, not {}".format(batch_per_device, self.batch_per_device))
        if self.loss_scale is not None and loss_scale not in (None, self.loss_scale):
            said.append("loss scale {}, not {:g}".format(loss_scale, self.loss_scale))
        return said


class RecipeError(ValueError):
    """A recipe that is not there, not one, or not for this batch; one sentence."""


def names() -> List[str]:
    return sorted(name[: -len(".json")] for name in os.listdir(FOLDER) if name.endswith(".json"))


def read(name: str) -> Recipe:
    """One of ours by its name, or a file by its path, as it is at the batch of its rate."""
    return _read(name)[0]


def find(name: str, global_batch: int) -> Recipe:
    """The same as it is at this global batch."""
    recipe, points = _read(name)
    return recipe if points is None else _at_its_point(recipe, points, global_batch)


def _read(name: str) -> Tuple[Recipe, List[Dict[str, Any]] | None]:
    path = name if name.endswith(".json") else os.path.join(FOLDER, name + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        points = found.pop("points", None)
        stem = os.path.basename(path)[: -len(".json")]
        return Recipe(name=stem, **found), points
    except FileNotFoundError:
        known = ", ".join(names())
        raise RecipeError("there is no recipe '{}'; there are {}, or a path.".format(name, known)) from None
    except (OSError, TypeError, ValueError, AttributeError) as error:
        raise RecipeError("{} does not hold a recipe: {}.".format(path, error)) from error


def _at_its_point(recipe: Recipe, points: List[Dict[str, Any]], global_batch: int) -> Recipe:
    """LARS does not scale by a rule: it has been tried at these batches, and is defined at no other."""
    by_batch = {point["batch"]: point for point in points}
    if global_batch not in by_batch:
        known = ", ".join(map(str, sorted(by_batch)))
        raise RecipeError(
            "{} is defined at global batches {}, and this is {}; change the batch or the number of "
            "devices.".format(recipe.name, known, global_batch)
        )
    point = by_batch[global_batch]
    told = {key: point[key] for key in ("rate", "warmup_epochs", "momentum", "weight_decay", "epochs")}
    return recipe._replace(rate_batch=global_batch, **told)


STANDARD = find("ngc-90", 256)


def convolutions(image_size: int) -> Iterator[Tuple[int, int, int, int]]:
    """Every convolution as (inputs, outputs, kernel, output side), then the classifier as a 1x1 on side 1."""
    side = _halved(image_size)
    yield 3, 64, 7, side
    side = _halved(side)
    channels = 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            before = side
            if block == 0 and stage > 0:
                side = _halved(side)
            yield channels, width, 1, before  # v1.5: the stride is in the 3x3, so this one runs at full size
            yield width, width, 3, side
            yield width, width * EXPANSION, 1, side
            if block == 0:
                yield channels, width * EXPANSION, 1, side
            channels = width * EXPANSION
    yield channels, CLASSES, 1, 1


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
