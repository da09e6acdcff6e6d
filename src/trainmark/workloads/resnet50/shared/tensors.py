"""Every tensor under its canonical name, the weights that all frameworks start from, and what is compared.

Names are `stem`, `blocks.0` to `blocks.15` and `classifier`; layouts are: a convolution as (outputs,
inputs, rows, columns), the classifier as (classes, features). What a training shows of itself are five
steps from given weights, every tensor as a sketch.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from trainmark.workloads.common.chance import float64_difference, sketch
from trainmark.workloads.resnet50.shared import recipe

WEIGHTS_SEED = 2015  # the year of the paper


class CanonicalLayer(NamedTuple):
    """`kind` is `conv`, `norm` or `linear`; `shape` is that of its weight, for a batch norm its channels."""

    name: str
    kind: str
    shape: Tuple[int, ...]


def layers() -> Iterator[CanonicalLayer]:
    """All layers with weights, in the order of the forward pass; a shortcut comes last of its block."""
    yield CanonicalLayer("stem.conv", "conv", (64, 3, 7, 7))
    yield CanonicalLayer("stem.norm", "norm", (64,))
    for index, (inputs, width, stride) in enumerate(recipe.bottlenecks()):
        name, outputs = "blocks.{}".format(index), width * recipe.EXPANSION
        kernels = ((width, inputs, 1, 1), (width, width, 3, 3), (outputs, width, 1, 1))
        for number, kernel in enumerate(kernels, 1):
            yield CanonicalLayer("{}.conv{}".format(name, number), "conv", kernel)
            yield CanonicalLayer("{}.norm{}".format(name, number), "norm", kernel[:1])
        if recipe.has_shortcut(inputs, width, stride):
            yield CanonicalLayer(name + ".shortcut.conv", "conv", (outputs, inputs, 1, 1))
            yield CanonicalLayer(name + ".shortcut.norm", "norm", (outputs,))
    yield CanonicalLayer("classifier", "linear", (recipe.CLASSES, recipe.features()))


PARTS = {"conv": ("weight",), "norm": ("scale", "bias", "mean", "variance"), "linear": ("weight", "bias")}


def tensor_names(layer: CanonicalLayer) -> List[str]:
    """The canonical names of a layer's tensors, in the order of PARTS."""
    return ["{}.{}".format(layer.name, part) for part in PARTS[layer.kind]]


def shapes() -> Dict[str, Tuple[int, ...]]:
    """Of all trained tensors and running statistics, by canonical name."""
    return {
        name: layer.shape if name.endswith("weight") else layer.shape[:1]
        for layer in layers()
        for name in tensor_names(layer)
    }


def is_statistic(name: str) -> bool:
    return name.endswith(("mean", "variance"))


def is_decayed(name: str) -> bool:
    """Weight decay is for all but batch norm."""
    return not is_statistic(name) and "norm" not in name


def initial_weights() -> Dict[str, np.ndarray]:
    """Weights for comparing frameworks, not for training: the same everywhere, and far from every kink.

    numpy keeps the streams of RandomState as they are for ever (NEP 19). With ordinary weights some of the
    ten million ReLUs stand so near zero that float32 puts them on the other side, and a gradient is then off
    by a hundredth; five steps later nothing can be compared. Here the batch norms' biases hold three channels
    in four well above zero and one well below. Channel 0 is left free, so that every bias has a gradient.
    """
    random = np.random.RandomState(WEIGHTS_SEED)
    values = {}
    for name, shape in shapes().items():
        # Small features make small steps: the loss falls as it would in real training.
        size = 0.02 if _feeds_classifier(name) else 1.0
        if name.endswith("weight"):
            gain = 1.0 if name.startswith("classifier") else 2.0
            value = random.standard_normal(shape) * np.sqrt(gain / np.prod(shape[1:]))
        elif name.endswith("variance"):
            value = random.uniform(0.5, 1.5, shape)
        elif name.endswith("scale"):
            value = size * random.uniform(0.5, 1.5, shape)
        elif name.endswith("bias") and "norm" in name:
            value = size * (_signs(shape[0]) * random.uniform(8.0, 10.0, shape) + _noise(random, shape))
        else:
            value = _noise(random, shape)
        values[name] = value.astype(np.float32)
    return values


def _feeds_classifier(name: str) -> bool:
    last_stage = name.startswith(("blocks.13.", "blocks.14.", "blocks.15."))
    return last_stage and ("norm3" in name or "shortcut.norm" in name)


def _signs(channels: int) -> np.ndarray:
    side = np.where(np.arange(channels) % 4 == 3, -1.0, 1.0)
    side[0] = 0.0
    return side


def _noise(random: np.random.RandomState, shape: Tuple[int, ...]) -> np.ndarray:
    return random.standard_normal(shape) * 0.1


def conformance_batch(rank: int, images: int, side: int) -> Tuple[np.ndarray, np.ndarray]:
    """The images (as images, channels, rows, columns) and labels of one rank."""
    random = np.random.RandomState(WEIGHTS_SEED + 1 + rank)
    pixels = random.standard_normal((images, 3, side, side)).astype(np.float32)
    return pixels, random.randint(0, recipe.CLASSES, images).astype(np.int64)


BATCH = 16
IMAGE_SIZE = 64
STEPS = 5
TRAINING_IMAGES = 16  # an epoch of one step, so that the rate of five steps rises as it does in eight epochs
# The first gradient is read off the weights that one step leaves. The larger the rate, the less is lost when
# the step is added to the weight; a power of two loses nothing itself.
PROBE_RATE = 1024.0


def observe(opt, training) -> Dict[str, Any]:
    """The gradient of the first step, then five steps by the recipe, each from the same weights and batch."""
    start = initial_weights()
    batch = training.place(*conformance_batch(opt.rank, opt.batch, opt.image_size))
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
    trained = [name for name in loaded if not is_statistic(name)]
    gradients = {name: first_gradient(name, loaded[name], probed[name]) for name in trained}
    return {
        "shapes": {name: list(value.shape) for name, value in loaded.items()},
        "losses": losses,
        "start": {name: sketch(name, value) for name, value in loaded.items()},
        "gradient_norms": {name: float(np.linalg.norm(value)) for name, value in gradients.items()},
        "gradients": {name: sketch(name, value) for name, value in gradients.items()},
        "moved": {name: sketch(name, float64_difference(last[name], loaded[name])) for name in trained},
        "statistics": {name: sketch(name, value) for name, value in last.items() if is_statistic(name)},
    }


def first_gradient(name: str, before, after) -> np.ndarray:
    """What the loss gave, without the weight decay that the recipe asks for."""
    applied = float64_difference(before, after) / PROBE_RATE
    return applied - recipe.STANDARD.weight_decay * before.astype(np.float64) if is_decayed(name) else applied
