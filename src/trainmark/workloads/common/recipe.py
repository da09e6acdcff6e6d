"""Recipes: how a model is trained, as JSON files that a family has in a folder, or a user anywhere."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass, replace
from typing import Any, Dict, Generic, List, Tuple, Type, TypeVar

LARGEST_LINEAR_BATCH = 8192  # Goyal et al. 2017: beyond it, a rate in proportion costs accuracy
LARGEST_BYTES = 1 << 20
UNSCALED = ("adamw", "lamb")  # their steps do not grow with the batch by a known rule
POWERS: Dict[str, float] = {"polynomial": 2, "linear": 1, "square-root": 0.5}  # of what is left of the course


@dataclass(frozen=True)
class Recipe:
    """How a model is trained, at one global batch. Weight decay is never on norms."""

    name: str
    optimizer: str  # sgd or lars; adamw or lamb
    weight_decay: float
    schedule: str  # cosine, polynomial (squared), linear or square-root
    rate: float  # at the global batch `rate_batch`; sgd scales it in proportion
    rate_batch: int
    warmup_epochs: float
    epochs: int
    momentum: float = 0.0
    label_smoothing: float = 0.0
    mixup: float = 0.0  # alpha: mixing coefficients come from Beta(alpha, alpha)
    end_rate: float = 0.0
    trust: float = 0.0  # LARS: the length of a step as a share of the weights' own, at rate 1
    target: Dict[str, float] | None = None
    batch_per_device: int | None = None
    loss_scale: float | None = None
    about: str = ""
    source: str = ""

    def learning_rate(self, step: int, global_batch: int, epoch_samples: int) -> float:
        """Rises linearly, then falls as the schedule says; in epochs, whatever the batch."""
        peak = self.rate if self.optimizer in UNSCALED else self.rate * global_batch / self.rate_batch
        epoch = (step + 1) * global_batch / epoch_samples  # the first step already moves
        if epoch < self.warmup_epochs:
            return peak * epoch / self.warmup_epochs
        left = 1 - min(1.0, (epoch - self.warmup_epochs) / (self.epochs - self.warmup_epochs))
        if self.schedule in POWERS:
            return float(self.end_rate + (peak - self.end_rate) * left ** POWERS[self.schedule])
        return self.end_rate + (peak - self.end_rate) * (1 + math.cos(math.pi * (1 - left))) / 2

    def over(self: R, epochs: int) -> R:
        """The same course in so many epochs, the warm-up in proportion."""
        return replace(self, epochs=epochs, warmup_epochs=self.warmup_epochs * epochs / self.epochs)

    def departures(self, epochs: int, batch_per_device: int, global_batch: int, loss_scale: Any) -> List[str]:
        """What the recipe fixes and this training does otherwise."""
        departures = []
        if epochs != self.epochs:
            departures.append("{} epochs, not {}".format(epochs, self.epochs))
        if self.optimizer == "sgd" and global_batch > LARGEST_LINEAR_BATCH:
            departures.append(
                "its rate grows with the batch, which is known to hold to {}, not to {}".format(
                    LARGEST_LINEAR_BATCH, global_batch
                )
            )
        if self.batch_per_device not in (None, batch_per_device):
            departures.append("batch {} a device, not {}".format(batch_per_device, self.batch_per_device))
        if self.loss_scale is not None and loss_scale not in (None, self.loss_scale):
            departures.append("loss scale {}, not {:g}".format(loss_scale, self.loss_scale))
        return departures


R = TypeVar("R", bound=Recipe)


class RecipeError(ValueError):
    """A recipe that is not there, not one, or not for this batch; one sentence."""


class Recipes(Generic[R]):
    """The recipes in a family's folder, each an instance of `kind`; `default` is the name of one."""

    def __init__(self, folder: str, kind: Type[R], default: str) -> None:
        self.folder, self.kind, self.default = folder, kind, default

    def names(self) -> List[str]:
        return sorted(name[: -len(".json")] for name in os.listdir(self.folder) if name.endswith(".json"))

    def read(self, name: str) -> R:
        """One of ours by its name, or a file by its path, as it is at the batch of its rate."""
        return self._read(name)[0]

    def find(self, name: str, global_batch: int) -> R:
        """The same as it is at this global batch."""
        recipe, points = self._read(name)
        return recipe if points is None else _at_its_point(recipe, points, global_batch)

    def _read(self, name: str) -> Tuple[R, List[Dict[str, Any]] | None]:
        path = name if name.endswith(".json") else os.path.join(self.folder, name + ".json")
        try:
            fields = json.loads(_text(path))
            points = fields.pop("points", None)
            stem = os.path.basename(path)[: -len(".json")]
            return self.kind(name=stem, **fields), points
        except FileNotFoundError:
            known = ", ".join(self.names())
            raise RecipeError(
                "there is no recipe '{}'; there are {}, or a path.".format(name, known)
            ) from None
        except (OSError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise RecipeError("{} does not hold a recipe: {}.".format(path, error)) from error


def _text(path: str) -> str:
    """The text of a regular file of bounded size: a FIFO would be waited for, a device never ends."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise ValueError("it is larger than {} MiB".format(LARGEST_BYTES >> 20))
    return content.decode("utf-8")


def _at_its_point(recipe: R, points: List[Dict[str, Any]], global_batch: int) -> R:
    """LARS does not scale by a rule: it has been tried at these batches, and is defined at no other."""
    by_batch = {point["batch"]: point for point in points}
    if global_batch not in by_batch:
        known = ", ".join(map(str, sorted(by_batch)))
        raise RecipeError(
            "{} is defined at global batches {}, and this is {}; change the batch or the number of "
            "devices.".format(recipe.name, known, global_batch)
        )
    point = by_batch[global_batch]
    fields = {key: point[key] for key in ("rate", "warmup_epochs", "momentum", "weight_decay", "epochs")}
    return replace(recipe, rate_batch=global_batch, **fields)
