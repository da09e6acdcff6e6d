"""What a training shows of itself for comparison: five steps from given weights, every tensor as a sketch."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np

from trainmark.workloads.common.sketch import difference, sketch
from trainmark.workloads.resnet50.shared import recipe, tensors

BATCH = 16
IMAGE_SIZE = 64
STEPS = 5
TRAINING_IMAGES = 16  # an epoch of one step, so that the rate of five steps rises as it does in eight epochs
# The first gradient is read off the weights that one step leaves. The larger the rate, the less is lost when
# the step is added to the weight; a power of two loses nothing itself.
PROBE_RATE = 1024.0


def observe(opt, training) -> Dict[str, Any]:
    """The gradient of the first step, then five steps by the recipe, each from the same weights and batch."""
    start = tensors.initial()
    batch = training.place(*tensors.batch(opt.rank, opt.batch, opt.image_size))
    training.load(start)
    loaded = training.tensors()
    training.step(*batch, PROBE_RATE)
    probed = training.tensors()
    training.load(start)
    reads = []
    for step in range(opt.steps):
        rate = recipe.STANDARD.learning_rate(step, opt.global_batch, opt.epoch_samples)
        reads.append(training.read(training.step(*batch, rate)))
    last = training.tensors()  # the device has passed every step: the losses can be read
    shown = summary(loaded, probed, last, [float(read()) for read in reads])
    return dict(shown, parameters=training.parameters())


def summary(loaded, probed, last, losses: List[float]) -> Dict[str, Any]:
    """Plain numbers, of tensors in float32 or float64."""
    trained = [name for name in loaded if not tensors.is_statistic(name)]
    gradients = {name: gradient(name, loaded[name], probed[name]) for name in trained}
    return {
        "shapes": {name: list(value.shape) for name, value in loaded.items()},
        "losses": losses,
        "start": {name: sketch(name, value) for name, value in loaded.items()},
        "gradient_norms": {name: float(np.linalg.norm(value)) for name, value in gradients.items()},
        "gradients": {name: sketch(name, value) for name, value in gradients.items()},
        "moved": {name: sketch(name, difference(last[name], loaded[name])) for name in trained},
        "statistics": {
            name: sketch(name, value) for name, value in last.items() if tensors.is_statistic(name)
        },
    }


def gradient(name: str, before, after) -> np.ndarray:
    """What the loss gave, without the weight decay that the recipe asks for."""
    applied = difference(before, after) / PROBE_RATE
    return (
        applied - recipe.STANDARD.weight_decay * before.astype(np.float64)
        if tensors.is_decayed(name)
        else applied
    )
